// UpdateLog: the order in which asynchronous updates were applied, so that it can be gone through
// again.
//
// A unit is one shard of one step. A worker's gradient of it is applied to each part by itself, so
// each part has a log of its own: a file for each round, written before anybody gets the parameters
// that the round ended with. So whatever survives, its log is there. A round that was done again
// has files of several generations; the last ones count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/members/store.h"

namespace muster::train {

struct Update {
  std::int64_t unit = 0;            // step * shards + shard
  std::uint64_t generation = 0;     // of the view in which it was applied
  int worker = 0;                   // the rank, there, of who computed it
  std::vector<std::int64_t> bases;  // by part: the version that the gradient was computed from
  friend bool operator==(const Update&, const Update&) = default;
};

// What was applied to one part in one round.
struct UpdateLog {
  std::int64_t from = 0, to = 0;  // steps
  int shards = 1;                 // of a step
  int parts = 1;
  int part = 0;
  std::uint64_t generation = 0;  // in which the round was finished
  std::vector<Update> updates;   // in their order
  friend bool operator==(const UpdateLog&, const UpdateLog&) = default;
};

using UpdateRound = std::vector<UpdateLog>;  // by part

// Makes the folder, if it is not there. An error: it cannot be written, or another run has its log
// there; `store` is that of the run.
Result<void> OpenUpdateLog(const std::string& folder, Store& store);

Result<void> WriteUpdateLog(const std::string& folder, const UpdateLog& log);

// The rounds from step 0 on, one after the other, as far as they are there. An error: a file is no
// log, a round has not each unit once in each part, or logs disagree on how the run was cut.
Result<std::vector<UpdateRound>> ReadUpdateLogs(const std::string& folder);

}  // namespace muster::train
