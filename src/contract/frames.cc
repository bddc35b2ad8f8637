#include "contract/frames.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "contract/fields.h"

namespace muster::contract {
namespace {

constexpr std::string_view kKinds = "dewzsxf";
constexpr int kLargestSide = 65'535;

// Big-endian, as networks have it.
void PutNumber(std::string& out, std::size_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

std::size_t GetNumber(std::string_view bytes) {
  std::size_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

}  // namespace

std::string EncodeFrame(FrameKind kind, std::string_view payload) {
  MUSTER_CHECK(payload.size() <= kLargestPayload, "whoever sends cuts into frames that fit");
  std::string out;
  out.reserve(kFrameHead + payload.size());
  out += static_cast<char>(kind);
  PutNumber(out, payload.size(), 4);
  out += payload;
  return out;
}

void FrameReader::Add(std::string_view bytes) {
  bytes_.erase(0, taken_);
  taken_ = 0;
  bytes_ += bytes;
}

Result<std::optional<Frame>> FrameReader::Next() {
  const auto rest = std::string_view(bytes_).substr(taken_);
  if (rest.size() < kFrameHead) return std::nullopt;
  if (kKinds.find(rest[0]) == std::string_view::npos) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} is no kind of frame", static_cast<unsigned char>(rest[0])));
  }
  const auto size = GetNumber(rest.substr(1, kFrameHead - 1));
  if (size > kLargestPayload) {
    return Fail(ErrorCode::kInvalid, fmt::format("a frame of {} bytes is too large", size),
                fmt::format("the most is {}", kLargestPayload));
  }
  if (rest.size() - kFrameHead < size) return std::nullopt;
  taken_ += kFrameHead + size;
  return Frame{static_cast<FrameKind>(rest[0]), std::string(rest.substr(kFrameHead, size))};
}

bool IsWindow(const Window& window) {
  return window.rows > 0 && window.cols > 0 && window.rows <= kLargestSide &&
         window.cols <= kLargestSide;
}

std::string EncodeWindow(const Window& window) {
  MUSTER_CHECK(IsWindow(window), "whoever sends has looked at what a user gave");
  std::string out;
  PutNumber(out, static_cast<std::size_t>(window.rows), 2);
  PutNumber(out, static_cast<std::size_t>(window.cols), 2);
  return out;
}

Result<Window> DecodeWindow(std::string_view payload) {
  if (payload.size() == 4) {
    const Window window{static_cast<int>(GetNumber(payload.substr(0, 2))),
                        static_cast<int>(GetNumber(payload.substr(2)))};
    if (IsWindow(window)) return window;
  }
  return Fail(ErrorCode::kInvalid, "this is no size of a window");
}

std::string EncodeEnded(const Ended& ended) {
  return Dump(nlohmann::json{{"exit_code", ended.exit_code}, {"signal", ended.signal}});
}

Result<Ended> DecodeEnded(std::string_view payload) {
  Ended ended;
  auto error = ReadObject("exit", payload, [&](Fields& fields) {
    fields.Need("exit_code", ended.exit_code);
    fields.Take("signal", ended.signal);
  });
  if (error) return tl::unexpected(*std::move(error));
  return ended;
}

}  // namespace muster::contract
