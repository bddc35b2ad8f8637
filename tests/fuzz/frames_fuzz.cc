// Any bytes through the reader of WebSocket frames: no crash, no leak, nothing beyond the bound;
// and the same is read whether they come at once or byte by byte.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "net/ws_frame.h"

namespace {

namespace net = muster::net;

constexpr std::size_t kMost = 4096;

struct Read {
  std::vector<net::WsEvent> events;
  int failure = 0;
};

Read ReadInPieces(std::string_view bytes, std::size_t piece, bool masked) {
  net::WsReader reader(masked, kMost);
  Read out;
  while (!bytes.empty() && reader.failure() == 0) {
    auto part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    while (auto event = reader.Next(part)) out.events.push_back(std::move(*event));
    MUSTER_CHECK(part.empty() || reader.failure() != 0, "a reader takes all, or fails");
  }
  out.failure = reader.failure();
  return out;
}

// What was read is the same after being written by us and read again.
void CheckRoundTrip(const net::WsEvent& event) {
  std::string bytes;
  if (event.op == net::WsOp::kClose) {
    net::AppendClose(bytes, event.code, event.payload);
  } else {
    net::AppendFrame(bytes, event.op, event.payload);
  }
  const auto again = ReadInPieces(bytes, bytes.size(), false);
  MUSTER_CHECK(again.failure == 0 && again.events.size() == 1, "our own frames are good");
  MUSTER_CHECK(again.events[0].payload == event.payload, "their payload is the same");
  MUSTER_CHECK(again.events[0].code == event.code, "their code is the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const bool masked : {true, false}) {
    const auto whole = ReadInPieces(bytes, size + 1, masked);
    const auto single = ReadInPieces(bytes, 1, masked);
    MUSTER_CHECK(whole.failure == single.failure, "pieces do not matter");
    MUSTER_CHECK(whole.events.size() == single.events.size(), "pieces do not matter");
    for (std::size_t i = 0; i < whole.events.size(); ++i) {
      MUSTER_CHECK(whole.events[i].payload == single.events[i].payload, "pieces do not matter");
      MUSTER_CHECK(whole.events[i].payload.size() <= kMost, "a message is bounded");
      CheckRoundTrip(whole.events[i]);
    }
  }
  return 0;
}
