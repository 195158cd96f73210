"""Hundreds of released files landed at once: judged like one, and not by one git process for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.support import Project, refused


def landing(place: Path, files: int, releases: int) -> Project:
    """The released work of `releases` workers, `files` in all, merged and staged on main; every fifth is a deletion."""
    project = Project(place)
    names = [f"shared/f{n}" for n in range(files)]
    project.commit(dict.fromkeys(names, "old\n"))
    project.unhooked("push", "-q", "origin", "main")
    for worker in range(releases):
        mine = names[worker::releases]
        project.work("bob", f"w{worker}", {name: None if name.endswith("5") else f"{name}\n" for name in mine})
    project.branch("landing")
    for worker in range(releases):
        project.unhooked("cherry-pick", "-n", f"w{worker}")
    return project


@pytest.mark.parametrize("releases", [1, 6])
def test_they_land(tmp_path: Path, releases: int) -> None:
    project = landing(tmp_path, 30, releases)
    done = project.try_commit({}, "boss")
    assert done.code == 0, done
    assert project.push("landing:main", agent="boss").code == 0
    # What landed is contained from now on, also where only history shows it.
    project.claim("shared", agent="alice")
    project.commit({f"shared/f{n}": "alice's\n" for n in range(30)}, "one", "alice")
    project.commit({f"shared/f{n}": "alice's again\n" for n in range(30)}, "two", "alice")
    assert project.push("landing:next", agent="alice").code == 0


@pytest.mark.parametrize("releases", [1, 6])
def test_the_one_that_is_something_else_is_found(tmp_path: Path, releases: int) -> None:
    project = landing(tmp_path, 30, releases)
    done = project.try_commit({"shared/f17": "something else\n"}, "boss")
    assert refused(done, "unclaimed", "shared/f17") and done.err.count("[unclaimed]") == 1, done
    assert refused(done, "lineage", "shared/f17") and done.err.count("[lineage]") == 1, done
    project.commit({}, "past the hooks")
    done = project.push("landing", agent="boss")
    assert refused(done, "lineage", "shared/f17") and done.err.count("[lineage]") == 1, done


@pytest.mark.parametrize("releases", [1, 6])
def test_what_is_stale_is_found(tmp_path: Path, releases: int) -> None:
    """alice commits her own versions, from before the releases, and none of the released ones."""
    project = landing(tmp_path, 30, releases)
    project.unhooked("reset", "-q", "--hard")
    project.claim("shared", agent="alice")
    done = project.try_commit({f"shared/f{n}": "alice's\n" for n in range(30)}, "alice")
    assert refused(done, "lineage", "shared/f0") and "and 10 more" in done.err, done


def test_the_number_of_files_does_not_count(tmp_path: Path) -> None:
    started = []
    for files in (20, 60):
        project = landing(tmp_path / str(files), files, 2)
        traces = tmp_path / f"traces{files}"
        traces.mkdir()
        done = project.try_git("commit", "-q", "-m", "all", agent="boss", env={"GIT_TRACE2_EVENT": str(traces)})
        assert done.code == 0, done
        started.append(len(list(traces.iterdir())))
    assert started[1] <= started[0] + 2, started
