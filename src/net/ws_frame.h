// WsFrame: the frames of RFC 6455, read as bytes come and written in one piece.
//
// No extensions, no compression. A reader keeps one message and at most `most` bytes of it; whoever
// breaks a rule is told the code to close with, and nothing behind that is read. Our own, rather
// than Beast's stream: that one cannot be stopped in the middle of a frame and asked again later,
// which a client with one thread needs, and it owns the connection, which is already ours. The
// tests talk to Beast's as the other side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::net {

enum class WsOp : std::uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10,
};

// The codes for closing that we use; those we receive may be others.
inline constexpr int kWsNormal = 1000;
inline constexpr int kWsGoingAway = 1001;
inline constexpr int kWsProtocolError = 1002;
inline constexpr int kWsNoCode = 1005;  // never sent: there was none
inline constexpr int kWsLost = 1006;    // never sent: the connection ended without
inline constexpr int kWsBadText = 1007;
inline constexpr int kWsTooLarge = 1009;
inline constexpr int kWsInternal = 1011;

using WsMask = std::array<std::uint8_t, 4>;

// Clients mask, servers do not.
void AppendFrame(std::string& out, WsOp op, std::string_view payload, const WsMask* mask = nullptr);
// With its code; a reason that is too long for a frame is cut.
void AppendClose(std::string& out, int code, std::string_view reason, const WsMask* mask = nullptr);

// A whole message, or one control frame.
struct WsEvent {
  WsOp op = WsOp::kBinary;
  std::string payload{};  // of a close: its reason
  int code = 0;           // of a close
};

class WsReader {
 public:
  WsReader(bool masked, std::size_t most) : masked_(masked), most_(most) {}

  // Takes what it uses from the front of `bytes`. Nothing: all was used and there must come more,
  // or a rule was broken.
  std::optional<WsEvent> Next(std::string_view& bytes);
  int failure() const { return failure_; }  // the code to close with; 0: none

 private:
  static constexpr std::size_t kLargestHead = 14;

  bool TakeHead(std::string_view& bytes);
  std::size_t HeadNeeds() const;
  bool ReadHead();
  bool Fail(int code);
  std::optional<WsEvent> Complete();
  std::optional<WsEvent> CompleteClose();

  const bool masked_;
  const std::size_t most_;
  int failure_ = 0;
  std::array<std::uint8_t, kLargestHead> head_{};
  std::size_t head_size_ = 0;
  bool in_payload_ = false;
  WsOp op_ = WsOp::kContinuation;
  bool fin_ = false;
  std::uint64_t left_ = 0;  // of the payload
  WsMask mask_{};
  std::size_t mask_at_ = 0;
  WsOp fragments_ = WsOp::kContinuation;  // the kind of the message under way; that: none
  std::string message_;
  std::string control_;
};

bool IsUtf8(std::string_view text);

// What a server answers to a client's key, which proves that it knows the protocol.
std::string WsAccept(std::string_view key);

}  // namespace muster::net
