// RunSpec: the job that the flags of `muster run` describe.
//
// The flags become a job file with one value a line, which is read by the rules of job files; so a
// wrong flag is refused with the same words as a wrong key, and the problem's line tells which flag
// it was. Nothing of the caller's environment reaches the job but what --env names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/spec_codec.h"

namespace muster::cli {

struct RunOptions {
  std::vector<std::string> command;
  std::string name;
  std::string queue = "default";
  std::string kind = "train";
  std::string gpus = "0";
  std::string cpus;
  std::string memory;
  std::string workers = "1";
  std::string priority;
  std::string framework;
  std::string time, retries, idle;
  std::string image;
  std::string workdir;
  std::string array;
  std::string from_template;
  std::vector<std::string> gpu_types;  // in order of preference, with commas between or one by one
  std::vector<std::string> env;        // K=V, or K for the caller's value
  std::vector<std::string> labels;     // K=V
  std::vector<std::string> after;      // NAME or NAME:ok
  std::vector<std::string> topology;   // prefer=nvlink
  std::optional<bool> preemptible;
  bool detach = false;
  bool dry_run = false;
  bool terminal = false;  // the program gets one, and ours is joined to it
};

Result<model::SpecFile> SpecOf(const RunOptions& options);

}  // namespace muster::cli
