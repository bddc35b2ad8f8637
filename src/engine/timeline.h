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

  // None: not even when all that runs has ended. Costs what ends until then, and a few placements.
  std::optional<Reservation> Reserve(const Piece& piece, std::int64_t now_ms);
  // Of a gang that its queue may not have yet. None: nor when all that runs has ended.
  std::optional<Reservation> ReserveWithin(const Piece& piece, std::int64_t now_ms);
  // Whether its queue may have it once nobody else is there.
  bool BoundsAllow(const Piece& piece) const;
  // The queues whose limit binds a job of that cost, or the quota where it is fixed work.
  std::vector<Reservation::Within> BoundsOf(const JobState& job, const Vec& cost) const;
  // One that was made a little while ago stands as long as its time has not come, its gang is as it
  // was and waits, and its nodes are there.
  bool Stands(const Reservation& made, std::int64_t now_ms) const;
  // What has come free of it since is kept as well.
  void Renew(Reservation& made, std::int64_t now_ms);

 private:
  void LetNextEnd(Cluster::Ends::const_iterator& end, const Cluster::Ends& ends);
  void GoTo(std::size_t look);
  bool Fits(const Piece& piece, std::vector<Hold>& out);
  void KeepWhatIsFree(Reservation& made) const;
  bool Leaves(JobId job, Reservation& made) const;
  bool MayHave(const Reservation& made) const;

  Cluster& cluster_;
  Placement& placement_;
  // Of one look ahead.
  std::vector<Cluster::Ends::value_type> gone_;  // those that end, in their order
  std::vector<std::size_t> looks_;               // so many of them at each
  std::size_t away_ = 0;                         // so many of them at the moment
};

}  // namespace muster::engine
