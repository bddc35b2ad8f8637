// Frame: what goes over a connection: a header of fixed size, and as many bytes as it says.
//
// Where frames are encrypted, a seal follows the header, and another one the payload, where there
// is any: whoever reads must believe a length before it has what the length is of, and one that was
// changed would make it take all that comes later for payload.
//
// Frames of kind kWire... are about bulk bytes that take another way (wire.h): they are small, and
// say what comes there.
#pragma once

#include <cstdint>

namespace muster::train {

enum class FrameKind : std::uint32_t {
  kBeat = 1,
  kTold,
  kBulk,
  kDone,
  kGaveUp,
  kWireAddress,    // payload: where the sender's end of the wire is
  kWireConnected,  // the sender's end is connected
  kWireBegin,      // payload: the length of the bulk whose bytes come next over the wire
  kWireChunk,      // chunk `tag` with so many bytes (`generation`) is on its way
  kWireFree,       // a chunk was taken: there is room for another
  kWireCut,        // the rest of the bulk at hand does not come
};
struct FrameHeader {
  FrameKind kind = FrameKind::kBeat;
  std::uint32_t unused = 0;
  std::uint64_t generation = 0, tag = 0, length = 0;
};
// The largest message is of a view, which is no larger in a store.
constexpr std::uint64_t kMostTold = std::uint64_t{4} << 20U;
constexpr std::uint64_t kMostBulk = std::uint64_t{1} << 36U;

}  // namespace muster::train
