from copy import deepcopy

import torch
from small_imitation import data_of, weights_after

from pisces.agents.ensemble import ImitationEnsemble, make_agent, member_seeds
from pisces.agents.imitation import ImitationAgent
from pisces.agents.settings import ImitationSettings

SETTINGS = {"batch_size": 16, "epochs": 2, "auxiliary": "contrastive"}


def ensemble_of(members=3, seed=5):
    return make_agent(data_of(), ImitationSettings(**SETTINGS, members=members), seed)


def test_members_learn_as_agents_of_their_own():
    ensemble = ensemble_of()
    for _ in range(6):
        ensemble.train_iteration()
    for member, seed in zip(ensemble.members, member_seeds(5, 3), strict=True):
        alone = ImitationAgent(data_of(), ImitationSettings(**SETTINGS), seed)
        assert torch.equal(weights_after(member, 0), weights_after(alone, 2))


def test_training_is_as_long_as_that_of_all_members():
    ensemble = ensemble_of()
    assert isinstance(ensemble, ImitationEnsemble)
    assert ensemble.total_iterations == 3 * ensemble.members[0].total_iterations
    assert isinstance(ensemble_of(1), ImitationAgent)


def test_seeds_differ_between_members_and_ensembles():
    seeds = [seed for ensemble in range(20) for seed in member_seeds(ensemble, 5)]
    assert len(set(seeds)) == len(seeds)
    assert member_seeds(3, 5)[0] == 3
    assert member_seeds(3, 5)[:2] == member_seeds(3, 2)


def test_a_restored_ensemble_goes_on_alike():
    ensemble, other = ensemble_of(), ensemble_of()
    for _ in range(4):
        ensemble.train_iteration()
    other.restore(*deepcopy(ensemble.state()))
    assert other.iteration == 4
    for agent in (ensemble, other):
        for _ in range(3):
            agent.train_iteration()
    for a, b in zip(ensemble.members, other.members, strict=True):
        assert torch.equal(weights_after(a, 0), weights_after(b, 0))
