// CheckpointFolder: the state after some steps, on disk, in as many files as it had parts.
//
// Each worker writes its part of the parameters and of the optimiser's state under a name that no
// reader looks for, then renames it; the file ends with a digest of all before it. A checkpoint is
// good when all its parts are there and sound, which anybody can see without having been told, so a
// worker that died while writing, a full disk or a flipped bit cost that checkpoint and no other.
// It can be read by any number of workers. Its parts are of one view: a step that is reached twice
// on different ways leaves two sets of parts, of which none replaces one of the other. One step is
// written at a time. What was written outlives a crash of the machine.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/run/extent.h"

namespace muster::train {

// The view in which a checkpoint was written. Generations begin anew where a job gets another
// store; who is first in the view is drawn anew with every worker that starts.
struct CheckpointView {
  std::uint64_t generation = 0;
  std::uint64_t first = 0;  // member

  friend auto operator<=>(const CheckpointView&, const CheckpointView&) = default;
};

struct CheckpointPart {
  std::int64_t step = 0;
  CheckpointView view = {};
  int columns = 1;
  int column = 0;
  int parts = 1;  // of the column
  int part = 0;
  int state_floats = 0;              // for each parameter
  std::string run = {};              // what is computed: terms.h
  std::vector<Extent> buckets = {};  // of the column
  std::vector<float> values = {};    // of each bucket's part: parameters, then state plane by plane
};

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Where the disk is full, all but the newest good one goes and it is tried once more.
  Result<void> Write(const CheckpointPart& part) const;
  // The newest good one: its name and step. Those that are not whole are passed over, but not one
  // that another version of Muster wrote: Read says that it is. An error: what could not be read
  // just now may be newer.
  Result<std::optional<std::pair<std::string, std::int64_t>>> Newest() const;
  // Hands over the parts one after the other; what one is refused with is the error of the whole.
  // kConflict: of another version, or so refused.
  Result<void> Read(const std::string& name,
                    const std::function<Result<void>(const CheckpointPart&)>& take) const;
  // All parts of all columns of this view are there, by their names: each is whole when it gets it.
  bool Complete(std::int64_t step, const CheckpointView& view, int columns) const;
  // Removes all but so many of the newest good ones, and leftovers that are older than those. What
  // is newer may be in the making; `writing`: only that step is. What could not be read just now
  // may be good: it stays, and so does one of another version that no newer one replaces.
  void Prune(int keep, std::optional<std::int64_t> writing = std::nullopt) const;
  // Removes what this view wrote of a step that it could not write as a whole.
  void Discard(std::int64_t step, const CheckpointView& view) const;

 private:
  Result<std::vector<std::pair<std::int64_t, std::string>>> Names() const;  // the newest first
  Result<void> Look(const std::string& name) const;                         // reads all of it
  int TryToWrite(const CheckpointPart& part) const;                         // the errno

  std::string path_;
};

}  // namespace muster::train
