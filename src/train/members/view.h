// View: who the workers of a job are in one generation, and the step they go on from.
//
// Views are claimed in the Store under their number, one after the other, and never change. Rank 0
// is the chief: it looks after the next change, and any other does when it is gone. What a worker
// holds of the state (Holding) is said apart from the view, when work stands still, so that the
// next view can be pieced together from whatever its members have, whichever change was
// interrupted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/mesh/mesh.h"

namespace muster::train {

struct View {
  std::uint64_t generation = 0;
  std::int64_t step = 0;          // so many steps are done
  std::vector<Endpoint> members;  // by rank
  std::vector<Endpoint> leaving;  // not members any more, but they still hand over what they hold
  std::vector<MemberId> servers;  // members that came as servers of parameters
  std::string checkpoint;         // a file to begin from; empty: from what is held, or the start
  // Decided by whoever proposed it, so that all members do the same.
  bool waits = false;  // too few to work: its members wait for others
  bool begun = false;  // there was one before that did not wait
  friend bool operator==(const View&, const View&) = default;

  std::optional<int> RankOf(MemberId id) const;  // among members
  bool Knows(MemberId id) const;                 // as a member or as one who leaves
  bool IsServer(MemberId id) const;
};

// A part of the state of a column after a step: one of so many parts of equal size, of each bucket.
struct Holding {
  enum class Kind { kParameters, kOptimizer };
  Kind kind = Kind::kParameters;
  int column = 0;
  int parts = 1;
  int part = 0;
  std::int64_t step = 0;
  friend bool operator==(const Holding&, const Holding&) = default;
};

using Holdings = std::map<MemberId, std::vector<Holding>>;

// What members and joiners tell each other; every message names its sender's generation.
struct JoinMessage {
  Endpoint endpoint;
  bool server = false;
};
struct LeaveMessage {};
struct StoppedMessage {
  std::uint64_t generation = 0;
  bool planned = false;  // all stop after the same step; else work is to be broken off
  std::int64_t completed = 0;
  std::vector<Holding> holdings;
  std::vector<MemberId> unreachable;  // members that the sender has lost
};
struct ChangeMessage {
  View view;
  Holdings holdings;
};

std::string Encode(const JoinMessage& message);
std::string Encode(const LeaveMessage& message);
std::string Encode(const StoppedMessage& message);
std::string Encode(const ChangeMessage& message);

struct Message {  // exactly one is there
  std::optional<JoinMessage> join;
  std::optional<LeaveMessage> leave;
  std::optional<StoppedMessage> stopped;
  std::optional<ChangeMessage> change;
};
Result<Message> DecodeMessage(std::string_view text);

}  // namespace muster::train
