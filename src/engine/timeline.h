// Timeline: when there will be room for a gang, if jobs end when they are expected to.
//
// Looks ahead from now: whoever ends next leaves, until the gang fits. What it then takes is its
// reservation: a time, and of the room it will have that which is free now. Whoever starts there
// and would still be there at that time delays it; whoever ends before does not (EASY). A gang that
// its queue may not have yet waits for work below that queue's limit to end, in the same way: what
// the limit leaves is kept for it, and no GPUs. Leaves the cluster as it was.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/cluster.h"
#include "engine/placement.h"

namespace muster::engine {

struct Reservation {
  JobId job = kNone;
  std::uint64_t sequence = 0;  // of the job: ids are used again
  std::int64_t at_ms = 0;
  std::int64_t made_ms = 0;
  std::vector<Hold> places;  // what it takes then; `host` is what it leaves of its nodes
  std::vector<Hold> holds;   // what is kept for it now

  // Instead, where it waits for the limit of a queue, or for the quota of fixed work.
  struct Within {
    QueueId queue = kNone;
    Vec room;  // that is kept for it now
  };
  std::vector<Within> within;  // its queue and those above, the highest last
  Vec cost;
  bool fixed = false;
};

class Timeline {
 public:
  Timeline(Cluster& cluster, Placement& placement) : cluster_(cluster), placement_(placement) {}

  // None: not even when all of them have ended, or not found out with bounded work.
  std::optional<Reservation> Reserve(const Piece& piece, std::int64_t now_ms);
  // Of a gang that its queue may not have yet. None: nor when all that runs has ended.
  std::optional<Reservation> ReserveWithin(const Piece& piece, std::int64_t now_ms);
  // A reservation that was made a little while ago stands, as long as its time has not come and its
  // nodes are there: what has come free of it since is kept as well.
  bool Renew(Reservation& made, std::int64_t now_ms);

 private:
  bool Fits(const Piece& piece, std::vector<Hold>& out);
  void KeepWhatIsFree(Reservation& made) const;
  bool Leaves(JobId job, Reservation& made) const;
  bool MayHave(const Reservation& made) const;

  Cluster& cluster_;
  Placement& placement_;
  std::vector<JobId> gone_;
};

}  // namespace muster::engine
