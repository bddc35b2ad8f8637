// CheckpointFolder: the state after some steps, on disk, in as many files as it had parts.
//
// Each worker writes its part of the parameters and of the optimiser's state under a name that no
// reader looks for, then renames it; the file ends with a digest of all before it. A checkpoint is
// good when all its parts are there and sound, which anybody can see without having been told, so a
// worker that died while writing, a full disk or a flipped bit cost that checkpoint and no other.
// It can be read by any number of workers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/run/extent.h"

namespace muster::train {

struct CheckpointPart {
  std::int64_t step = 0;
  int columns = 1;
  int column = 0;
  int parts = 1;  // of the column
  int part = 0;
  int state_floats = 0;              // for each parameter
  std::vector<Extent> buckets = {};  // of the column
  std::vector<float> values = {};    // of each bucket's part: parameters, then state plane by plane
};

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  Result<void> Write(const CheckpointPart& part) const;
  // The newest good one: its name and step. Those that are not good are passed over.
  std::optional<std::pair<std::string, std::int64_t>> Newest() const;
  // Hands over the parts one after the other.
  Result<void> Read(const std::string& name,
                    const std::function<Result<void>(const CheckpointPart&)>& take) const;
  // Removes all but so many of the newest good ones, and leftovers that are older than those.
  void Prune(int keep) const;

 private:
  std::vector<std::pair<std::int64_t, std::string>> Names() const;  // the newest first
  bool Sound(const std::string& name) const;
  // Gives the number of columns of the checkpoint.
  Result<int> ReadColumn(const std::string& folder, int column,
                         const std::function<Result<void>(const CheckpointPart&)>& take) const;

  std::string path_;
};

}  // namespace muster::train
