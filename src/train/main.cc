// muster-train: one worker of an elastic training job on a built-in model, or several on this
// machine. Run by Muster it follows the scheduler; by hand it needs nothing else.
#include <string>

#include "train/data/files.h"
#include "train/program.h"

namespace muster::train {
namespace {

Result<OpenedWorkload> Open(const ModelRun& run) {
  auto opened = ModelWorkload::Open(run);
  if (!opened) return tl::unexpected(opened.error());
  OpenedWorkload out;
  out.test = [model = opened->get()](std::span<const float> parameters) {
    return model->Test(parameters);
  };
  out.join = [model = opened->get()](const Grid& grid, const auto& columns) {
    return model->Join(grid, columns);
  };
  out.workload = std::move(*opened);
  return out;
}

}  // namespace
}  // namespace muster::train

int main(int argc, char** argv) {
  return muster::train::RunTrainProgram(
      argc, argv,
      {.name = "muster-train",
       .about = "Trains a built-in model, on one worker or many, with the same result.",
       .models = "mlp:IN,HIDDEN,...,OUT | conv:digits | transformer:layers=L,...",
       .run = {},
       .choices = {{"text:" + std::string(muster::train::kTextFile),
                    "transformer:layers=2,width=64,heads=4,context=64,vocab=96", 16,
                    muster::train::kTextFile},
                   {"linear", "mlp:8,1", 64, ""}},
       .add_flags = {},
       .open = muster::train::Open});
}
