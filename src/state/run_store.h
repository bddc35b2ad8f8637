// RunStore: where runs are kept: a file of SQLite beside the journal, whatever keeps that.
//
// Apart from the journal, because it is written all the time and nothing depends on it: a write
// that is lost costs a few points of a curve, so none waits for the disk, and a file that cannot be
// read is put aside and begun anew. One thread uses it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "state/run_record.h"

namespace muster::state {

struct Run {
  RunHead head;
  RunCurve curve;
};

class RunStore {
 public:
  // `path`.damaged takes the place of a file that is none of ours.
  static Result<std::unique_ptr<RunStore>> Open(const std::string& path);
  virtual ~RunStore() = default;

  virtual Result<void> Save(const std::vector<const Run*>& runs) = 0;
  // None: there is no such run, or it cannot be read.
  virtual std::optional<Run> Load(model::JobNumber job) = 0;
  virtual std::optional<RunHead> Head(model::JobNumber job) = 0;
  virtual std::vector<model::JobNumber> Latest(std::size_t most) = 0;  // newest first
  // Those whose last report is older.
  virtual Result<void> Drop(std::int64_t before_ms) = 0;
};

}  // namespace muster::state
