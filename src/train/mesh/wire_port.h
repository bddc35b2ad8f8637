// WirePort: the little that a Wire asks of Gloo, as C functions of a shared object of its own.
//
// The object is loaded when a wire is asked for, so that programs do not need Gloo to start and can
// be copied to machines without it. No exception and no type of the C++ library crosses: the
// program has a C++ library inside of it, Gloo uses the one of the system. A pair is two ends with
// a few slots of fixed size in each direction; what is sent from a slot lands in the slot of the
// same number at the other end. One thread uses a pair; only `shut` may be called from others.
// What fails returns null or false and says why.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::train {

constexpr std::uint32_t kWirePortVersion = 1;
constexpr std::size_t kMostWireAddress = 256;
constexpr const char* kWirePortFile = "libmuster-train-gloo.so";
constexpr const char* kWirePortSymbol = "MusterTrainWirePort";

struct WireDevice;
struct WirePair;

struct WireFault {
  char text[400];  // NOLINT(modernize-avoid-c-arrays): it crosses to C
};

struct WireDeviceOptions {
  bool rdma;
  const char* address;  // TCP: a number to listen on
  const char* name;     // RDMA: empty for the first one there is
  int port, gid_index;  // RDMA
};

struct WirePairOptions {
  int slots;
  std::size_t slot_bytes;
  bool first;               // exactly one of the two ends
  std::int64_t timeout_ms;  // after which a wait fails, and the pair with it
};

struct WirePort {
  std::uint32_t version;
  WireDevice* (*open_device)(const WireDeviceOptions* options, WireFault* why);
  void (*close_device)(WireDevice* device);  // its pairs are closed
  WirePair* (*open_pair)(WireDevice* device, const WirePairOptions* options, WireFault* why);
  void (*close_pair)(WirePair* pair);
  void (*shut)(WirePair* pair);  // waits end with an error, where the device can do that

  std::size_t (*address)(WirePair* pair, char* into);  // kMostWireAddress there; how many it has
  bool (*connect)(WirePair* pair, const char* address, std::size_t bytes, WireFault* why);
  bool (*make_slots)(WirePair* pair, WireFault* why);  // both ends are connected

  std::byte* (*outgoing)(WirePair* pair, int slot);
  std::byte* (*incoming)(WirePair* pair, int slot);
  bool (*send)(WirePair* pair, int slot, std::size_t bytes, WireFault* why);
  bool (*await_sent)(WirePair* pair, int slot, WireFault* why);  // after each send
  bool (*await_received)(WirePair* pair, int slot, WireFault* why);
};

using WirePortFunction = const WirePort* (*)();

}  // namespace muster::train
