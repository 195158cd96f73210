"""Small files, and those that are not so small."""

from pathlib import Path

import pytest

from gitcoord.store.files import read_file, read_regular, write_file


@pytest.mark.parametrize("size", [0, 1, 16383, 16384, 16385, 40000])
@pytest.mark.parametrize("limit", [1, 16384, 16385, 20000, 1 << 20])
def test_a_file_is_read_up_to_the_limit(tmp_path: Path, size: int, limit: int) -> None:
    data = bytes(number % 251 for number in range(size))
    (tmp_path / "file").write_bytes(data)
    assert read_file(str(tmp_path / "file"), limit) == data[:limit]
    assert read_regular(str(tmp_path / "file"), limit) == data[:limit]


def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("posix.rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(str(tmp_path / "file"), b"data")
    assert not list(tmp_path.iterdir())
