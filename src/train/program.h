// TrainProgram: what the programs that train have in common: flags, reports, workers on one
// machine.
//
// A program says how a workload is opened and tested; all else is here: it joins the others of its
// job, follows the scheduler where there is one, tells people and the scheduler how it goes, and
// starts several workers of itself when it is asked to. Workers are forked before anything is
// opened, so a library that keeps threads or a GPU is set up in each of them alone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/run/model_workload.h"
#include "train/run/strategy.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace muster::train {

struct OpenedWorkload {
  std::unique_ptr<Workload> workload;
  std::function<ModelWorkload::Score(std::span<const float> parameters)> test;
  // Puts the columns of a cut model together; empty: there is one.
  std::function<std::vector<float>(const Grid&, const std::vector<std::vector<float>>&)> join;
  std::function<std::string()> used;  // said at the end; empty: nothing
};

struct TrainProgram {
  std::string name, about;
  std::string models;  // what --model takes
  ModelRun run;        // what holds unless flags say otherwise
  // What is trained where flags name neither data nor a model: the first whose file is there.
  struct Choice {
    std::string data, model;
    std::size_t batch = 1;
    std::string needs;  // a file; empty: nothing
  };
  std::vector<Choice> choices;
  std::function<void(CLI::App&)> add_flags;
  std::function<Result<OpenedWorkload>(const ModelRun&)> open;
};

int RunTrainProgram(int argc, char** argv, const TrainProgram& program);

}  // namespace muster::train
