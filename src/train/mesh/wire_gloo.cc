// The WirePort over Gloo's pairs with bound buffers, which all its devices have; ibverbs has no
// others in the version of Debian 12. This is all that is compiled against Gloo.
//
// Over TCP, Gloo's own thread moves the bytes, and `shut` makes it see the end of the connection,
// which is the only thing that ends waits: Pair::close does not. Over ibverbs that thread would end
// the process at the first work request that fails, as all do when a peer is gone; so such a pair
// is switched to synchronous mode, where the one who waits polls and gets the exception. There
// Gloo takes at most 8 requests at a time in each direction, the messages that exchange the slots'
// keys among them: hence 4 slots.
#include <fcntl.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/ibverbs/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/mesh/wire_port.h"

namespace muster::train {

struct WireDevice {
  std::shared_ptr<gloo::transport::Device> device;
  bool rdma = false;
};

namespace {

constexpr std::size_t kPage = 4096;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Free>;
using BufferPtr = std::unique_ptr<gloo::transport::Buffer>;

}  // namespace

struct WirePair {
  WirePairOptions options{};
  bool rdma = false;
  std::atomic<int> socket = -1;  // TCP, once it is connected
  Memory out, in;
  std::shared_ptr<gloo::transport::Context> context;  // which owns the pair
  gloo::transport::Pair* pair = nullptr;
  std::vector<BufferPtr> outgoing, incoming;  // gone before the pair
};

namespace {

// A descriptor of our own of the socket that a connected pair uses, to end it with: found by its
// address, because Gloo has no function for it and Debian not all of the headers to look inside.
int FindSocket(const gloo::transport::Pair& pair) {
  const gloo::transport::tcp::Address own(pair.address().bytes());
  const auto& wanted = own.getSockaddr();
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::atoi(entry.path().filename().c_str());
    sockaddr_storage here{}, there{};
    socklen_t size = sizeof here, there_size = sizeof there;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) != 0) continue;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_size) != 0) continue;
    if (std::memcmp(&here, &wanted, size) == 0) return ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  }
  return -1;
}

template <typename Call>
auto Guard(WireFault* why, const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& error) {
    std::snprintf(why->text, sizeof why->text, "%s", error.what());
  }
  return {};
}

WireDevice* OpenDevice(const WireDeviceOptions* options, WireFault* why) {
  return Guard(why, [&] {
    auto out = std::make_unique<WireDevice>();
    out->rdma = options->rdma;
    if (options->rdma) {
      gloo::transport::ibverbs::attr attr{options->name, options->port, options->gid_index};
      out->device = gloo::transport::ibverbs::CreateDevice(attr);
    } else {
      out->device = gloo::transport::tcp::CreateDevice(options->address);
    }
    return out.release();
  });
}

void CloseDevice(WireDevice* device) { delete device; }

std::size_t SlotBytes(const WirePairOptions& options) {
  return (options.slot_bytes + kPage - 1) / kPage * kPage;
}

Memory SlotMemory(const WirePairOptions& options) {
  const std::size_t bytes = SlotBytes(options) * static_cast<std::size_t>(options.slots);
  Memory out(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes)));
  if (!out) throw std::bad_alloc();
  return out;
}

WirePair* OpenPair(WireDevice* device, const WirePairOptions* options, WireFault* why) {
  return Guard(why, [&] {
    auto out = std::make_unique<WirePair>();
    out->options = *options;
    out->rdma = device->rdma;
    out->out = SlotMemory(*options);
    out->in = SlotMemory(*options);
    out->context = device->device->createContext(0, 2);
    out->context->setTimeout(std::chrono::milliseconds(options->timeout_ms));
    out->pair = out->context->createPair(1).get();
    return out.release();
  });
}

// Over RDMA nothing can be done: there waits end by themselves, when the adapter gives up.
void Shut(WirePair* pair) {
  if (pair->rdma) return;
  WireFault ignored{};
  Guard(&ignored, [&] {
    const int socket = pair->socket;
    if (socket < 0) {
      pair->pair->close();  // it is being connected
    } else {
      ::shutdown(socket, SHUT_RDWR);  // Gloo's thread sees the end, and tells those who wait
    }
    return true;
  });
}

void ClosePair(WirePair* pair) {
  WireFault ignored{};
  Guard(&ignored, [&] {
    // Before the buffers are gone, which Gloo's thread may be reading into.
    pair->pair->close();
    const int socket = pair->socket;
    if (socket >= 0) {
      // Gloo has asked for what was sent and has not arrived to be taken back.
      const linger off{};
      ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &off, sizeof off);
      ::close(socket);
    }
    pair->outgoing.clear();
    pair->incoming.clear();
    delete pair;
    return true;
  });
}

std::size_t AddressOf(WirePair* pair, char* into) {
  const auto bytes = pair->pair->address().bytes();
  const std::size_t size = std::min(bytes.size(), kMostWireAddress);
  std::memcpy(into, bytes.data(), size);
  return size;
}

bool Connect(WirePair* pair, const char* address, std::size_t bytes, WireFault* why) {
  return Guard(why, [&] {
    // Gloo reads an address of its own size from it.
    if (bytes != pair->pair->address().bytes().size()) {
      throw std::runtime_error("the other end has an address of another kind of device");
    }
    pair->pair->connect(std::vector<char>(address, address + bytes));
    if (pair->rdma) {
      pair->pair->setSync(true, true);
    } else {
      pair->socket = FindSocket(*pair->pair);
      if (pair->socket < 0) throw std::runtime_error("its socket was closed");
    }
    return true;
  });
}

std::byte* At(const WirePair& pair, const Memory& memory, int slot) {
  return memory.get() + SlotBytes(pair.options) * static_cast<std::size_t>(slot);
}

bool MakeSlots(WirePair* pair, WireFault* why) {
  return Guard(why, [&] {
    const auto& options = pair->options;
    for (int slot = 0; slot < options.slots; ++slot) {
      const int forth = slot, back = slot + options.slots;
      pair->incoming.push_back(pair->pair->createRecvBuffer(
          options.first ? back : forth, At(*pair, pair->in, slot), options.slot_bytes));
      pair->outgoing.push_back(pair->pair->createSendBuffer(
          options.first ? forth : back, At(*pair, pair->out, slot), options.slot_bytes));
    }
    return true;
  });
}

std::byte* Outgoing(WirePair* pair, int slot) { return At(*pair, pair->out, slot); }
std::byte* Incoming(WirePair* pair, int slot) { return At(*pair, pair->in, slot); }

bool Send(WirePair* pair, int slot, std::size_t bytes, WireFault* why) {
  return Guard(why, [&] {
    pair->outgoing.at(static_cast<std::size_t>(slot))->send(0, bytes);
    return true;
  });
}

bool AwaitSent(WirePair* pair, int slot, WireFault* why) {
  return Guard(why, [&] {
    pair->outgoing.at(static_cast<std::size_t>(slot))->waitSend();
    return true;
  });
}

bool AwaitReceived(WirePair* pair, int slot, WireFault* why) {
  return Guard(why, [&] {
    pair->incoming.at(static_cast<std::size_t>(slot))->waitRecv();
    return true;
  });
}

}  // namespace
}  // namespace muster::train

extern "C" __attribute__((visibility("default"))) const muster::train::WirePort*
MusterTrainWirePort() {
  using namespace muster::train;  // NOLINT(google-build-using-namespace): names of this file
  static constexpr WirePort kPort{
      kWirePortVersion, OpenDevice, CloseDevice, OpenPair, ClosePair, Shut,      AddressOf,
      Connect,          MakeSlots,  Outgoing,    Incoming, Send,      AwaitSent, AwaitReceived};
  return &kPort;
}
