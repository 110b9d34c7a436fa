import numpy as np
import pytest

from jumping_embeddings import EMBEDDED, embeddings_figure, main, pack, reduced
from pisces.errors import UserError


def test_reduced_vectors_keep_their_distances():
    vectors = (np.random.default_rng(0).normal(size=(40, 8)) @ np.random.default_rng(1).normal(size=(8, 100))).astype(
        np.float32
    )
    small = reduced(vectors, 16).astype(float)
    assert small.shape == (40, 16)
    expected = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    assert np.linalg.norm(small[:, None] - small[None], axis=2) == pytest.approx(expected, abs=0.1)
    assert reduced(vectors[:, :3]).shape == (40, 3)


def test_stored_embeddings_are_drawn_after_the_episodes(tmp_path, write_run, capsys):
    assert embeddings_figure(tmp_path) is None
    for method in EMBEDDED:
        write_run(tmp_path / "runs", method, checkpoint=True)
    main(tmp_path / "runs", tmp_path)
    assert "embeddings.npz" in capsys.readouterr().out
    episodes, *panels = embeddings_figure(tmp_path, "pca").axes
    distances = [29, 24, 19, 14, 9, 44, 39, 34, 29, 24, 19, 14, 9]
    assert [int(text.get_text()) for text in episodes.texts] == distances
    assert [axes.get_title() for axes in panels] == [
        f"{title} (PCA, {distance})" for title, distance in EMBEDDED.values()
    ]
    assert all(len(axes.collections) == 6 for axes in panels)


def test_a_missing_agent_is_named_with_the_command_that_trains_it(tmp_path, write_run):
    write_run(tmp_path, "randconv+pse", checkpoint=True)
    with pytest.raises(UserError, match=r"no agent of randconv\+psm-l2 .* pisces sweep jumping"):
        pack(tmp_path, tmp_path)
