// muster-train-torch: as muster-train, with a torch module in place of a built-in model, on the CPU
// or on a GPU.
#include <CLI/CLI.hpp>
#include <string>

#include "train/data/files.h"
#include "train/torch/torch_run.h"

int main(int argc, char** argv) {
  muster::train::TorchFlags flags;
  muster::train::TrainProgram program;
  program.name = "muster-train-torch";
  program.about = "Trains a torch model, on one worker or many, with the same result.";
  program.models = muster::train::kTorchModels;
  program.run.model = "conv:digits";
  program.choices = {{"text:" + std::string(muster::train::kTextFile),
                      "transformer:layers=2,width=64,heads=4,context=64", 16,
                      muster::train::kTextFile}};
  program.add_flags = [&](CLI::App& app) {
    app.add_option("--device", flags.device, "cpu | cuda");
    app.add_option("--precision", flags.precision, "float32 | bfloat16 | float16 (on a GPU)");
    app.add_option("--loss-scale", flags.loss_scale, "a power of two, for float16: 1024");
    app.add_option("--threads", flags.threads, "of torch in each worker; part of the result")
        ->check(CLI::Range(1, 1024));
    app.add_option("--sum", flags.sum,
                   "of gradients on GPUs with --exact false: nccl | mesh | auto");
  };
  program.open = [&](const muster::train::ModelRun& run) {
    return muster::train::OpenTorchRun(run, flags);
  };
  return muster::train::RunTrainProgram(argc, argv, program);
}
