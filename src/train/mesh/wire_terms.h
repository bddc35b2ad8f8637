// WireTerms: over what two members move bulk bytes, as their handshake settled it.
//
// What each can do is part of what both prove in the handshake, so nobody on the way can talk them
// into less. The keys are made from it, one for each direction, and used for nothing else.
#pragma once

#include <cstdint>

#include "train/mesh/sealing.h"

namespace muster::train {

// A set of them is what a member can do; the highest that both can is taken.
enum class WireKind : std::uint16_t {
  kTcp = 1,      // the connection itself
  kGloo = 2,     // a pair of Gloo over TCP
  kIbverbs = 4,  // a pair of Gloo over RDMA
};
using WireKinds = std::uint16_t;

struct WireTerms {
  WireKind kind = WireKind::kTcp;
  bool first = false;     // this member dialed
  bool encrypt = false;   // what goes over the wire
  Hash mine{}, theirs{};  // keys of this connection: of what this one sends, and the other
};

}  // namespace muster::train
