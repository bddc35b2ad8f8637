// Timeline: when there will be room for a gang, if jobs end when they are expected to.
//
// Looks ahead from now: whoever ends next leaves, until the gang fits. What it then takes is its
// reservation: a time, and of the room it will have that which is free now. Whoever starts there
// and would still be there at that time delays it; whoever ends before does not (EASY). Leaves the
// cluster as it was.
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
};

class Timeline {
 public:
  Timeline(Cluster& cluster, Placement& placement) : cluster_(cluster), placement_(placement) {}

  // None: not even when all of them have ended, or not found out with bounded work.
  std::optional<Reservation> Reserve(const Piece& piece, std::int64_t now_ms);
  // A reservation that was made a little while ago stands, as long as its time has not come and its
  // nodes are there: what has come free of it since is kept as well.
  bool Renew(Reservation& made, std::int64_t now_ms) const;

 private:
  bool Fits(const Piece& piece, std::vector<Hold>& out);
  void KeepWhatIsFree(Reservation& made) const;

  Cluster& cluster_;
  Placement& placement_;
  std::vector<JobId> gone_;
};

}  // namespace muster::engine
