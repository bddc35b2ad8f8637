// Frames: what goes both ways through <run_dir>/door once the request was sent (see door.h).
//
// One byte of kind, four of length (big-endian), then the payload; at most 64 KiB, so that whoever
// reads knows what it must have room for. Bytes of a terminal are no text and come in floods, which
// is why these are no JSON lines. A reader copies each byte twice: in, and out as a frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::contract {

inline constexpr std::size_t kLargestPayload = std::size_t{64} << 10;
inline constexpr std::size_t kFrameHead = 5;

enum class FrameKind : char {
  kData = 'd',    // to the worker: what is typed; from it: standard output
  kErr = 'e',     // from it: standard error, where that is not the same terminal
  kWindow = 'w',  // to it: the size of the terminal is now this
  kEnd = 'z',     // to it: nothing more will be typed
  kSignal = 's',  // to it: a signal by its name
  kExit = 'x',    // from it: how it ended; nothing follows
  kFault = 'f',   // from the shim: why it does not go on; nothing follows
};

struct Frame {
  FrameKind kind = FrameKind::kData;
  std::string payload;
  friend bool operator==(const Frame&, const Frame&) = default;
};

// The payload must not be larger than kLargestPayload.
std::string EncodeFrame(FrameKind kind, std::string_view payload);

class FrameReader {
 public:
  void Add(std::string_view bytes);

  // None: more bytes are needed. After an error there is no telling where the next frame begins.
  Result<std::optional<Frame>> Next();

 private:
  std::string bytes_;
  std::size_t taken_ = 0;
};

// The payloads that are more than bytes.
struct Window {
  int rows = 24;
  int cols = 80;
  friend bool operator==(const Window&, const Window&) = default;
};
struct Ended {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;      // 0: ended by itself
  friend bool operator==(const Ended&, const Ended&) = default;
};

bool IsWindow(const Window& window);  // both 1 to 65535

std::string EncodeWindow(const Window& window);  // two bytes each, big-endian, rows first
Result<Window> DecodeWindow(std::string_view payload);
std::string EncodeEnded(const Ended& ended);
Result<Ended> DecodeEnded(std::string_view payload);

}  // namespace muster::contract
