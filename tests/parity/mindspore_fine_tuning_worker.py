"""MindSpore's recorder as people fine-tune it by hand: mindspore_fine_tuning_worker.py JOB.json.

Nothing is frozen, the norms go on with the batch's statistics, and the new head is drawn from another distribution.
"""

from msmigrate.workers.worker import prepare_mindspore, run

prepare_mindspore()

from mindspore import Parameter  # noqa: E402
from mindspore.common.initializer import Normal, initializer  # noqa: E402
from msmigrate.parity.job import ParityJob  # noqa: E402
from msmigrate.parity.record import mindspore_worker  # noqa: E402
from msmigrate.training.models import mindspore_models  # noqa: E402

if __name__ == "__main__":
    real = mindspore_models.of_recipe

    def of_recipe(model):
        net = real(model)
        weight: Parameter = net.fc.weight
        weight.set_data(initializer(Normal(0.01), weight.shape, weight.dtype))
        return net

    mindspore_models.of_recipe = of_recipe
    mindspore_models.fine_tune = lambda net, options: []
    run(mindspore_worker.main, ParityJob.read)
