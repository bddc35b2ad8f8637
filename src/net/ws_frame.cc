#include "net/ws_frame.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "net/base64.h"

namespace muster::net {
namespace {

constexpr std::size_t kMostControl = 125;
constexpr std::uint8_t kFin = 0x80;
constexpr std::uint8_t kReserved = 0x70;
constexpr std::uint8_t kOp = 0x0f;
constexpr std::uint8_t kMasked = 0x80;
constexpr std::uint8_t kLength = 0x7f;

bool IsControl(WsOp op) { return op >= WsOp::kClose; }

bool BeginsFrame(std::uint8_t first, std::uint8_t second, bool masked) {
  const int op = first & kOp;
  if ((first & kReserved) != 0 || (op > 2 && op < 8) || op > 10) return false;
  if (((second & kMasked) != 0) != masked) return false;
  const bool short_and_whole = (first & kFin) != 0 && (second & kLength) <= kMostControl;
  return !IsControl(static_cast<WsOp>(op)) || short_and_whole;
}

// The mask repeats every four bytes, so eight can be done at a time.
void ApplyMask(char* data, std::size_t size, const WsMask& mask, std::size_t at) {
  std::array<std::uint8_t, 8> turned{};
  for (std::size_t i = 0; i < turned.size(); ++i) turned[i] = mask[(at + i) % mask.size()];
  std::uint64_t wide = 0;
  std::memcpy(&wide, turned.data(), sizeof(wide));
  std::size_t i = 0;
  for (; i + sizeof(wide) <= size; i += sizeof(wide)) {
    std::uint64_t block = 0;
    std::memcpy(&block, data + i, sizeof(block));
    block ^= wide;
    std::memcpy(data + i, &block, sizeof(block));
  }
  for (; i < size; ++i) {
    data[i] = static_cast<char>(static_cast<std::uint8_t>(data[i]) ^ turned[i % turned.size()]);
  }
}

void AppendBigEndian(std::string& out, std::uint64_t value, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
    out += static_cast<char>((value >> shift) & 0xff);
  }
}

bool MayBeSent(int code) {
  const bool standard =
      code >= 1000 && code <= 1014 && code != 1004 && code != kWsNoCode && code != kWsLost;
  return standard || (code >= 3000 && code <= 4999);
}

}  // namespace

void AppendFrame(std::string& out, WsOp op, std::string_view payload, const WsMask* mask) {
  const int mark = mask == nullptr ? 0 : kMasked;
  out += static_cast<char>(kFin | static_cast<std::uint8_t>(op));
  if (payload.size() <= kMostControl) {
    out += static_cast<char>(mark | static_cast<int>(payload.size()));
  } else if (payload.size() <= 0xffff) {
    out += static_cast<char>(mark | 126);
    AppendBigEndian(out, payload.size(), 2);
  } else {
    out += static_cast<char>(mark | 127);
    AppendBigEndian(out, payload.size(), 8);
  }
  if (mask != nullptr) {
    for (const auto byte : *mask) out += static_cast<char>(byte);
  }
  const std::size_t begin = out.size();
  out += payload;
  if (mask != nullptr) ApplyMask(out.data() + begin, payload.size(), *mask, 0);
}

void AppendClose(std::string& out, int code, std::string_view reason, const WsMask* mask) {
  std::string payload;
  if (MayBeSent(code)) {
    AppendBigEndian(payload, static_cast<std::uint64_t>(code), 2);
    reason = reason.substr(0, kMostControl - payload.size());
    while (!IsUtf8(reason)) reason.remove_suffix(1);  // ends at the latest with nothing left
    payload += reason;
  }
  AppendFrame(out, WsOp::kClose, payload, mask);
}

bool WsReader::Fail(int code) {
  failure_ = code;
  message_ = {};
  control_ = {};
  return false;
}

std::size_t WsReader::HeadNeeds() const {
  if (head_size_ < 2) return 2;
  const int length = head_[1] & kLength;
  const std::size_t extra = length == 126 ? 2 : length == 127 ? 8 : 0;
  return 2 + extra + ((head_[1] & kMasked) != 0 ? mask_.size() : 0);
}

// Whether the head is complete and within the rules.
bool WsReader::TakeHead(std::string_view& bytes) {
  while (head_size_ < HeadNeeds()) {
    if (bytes.empty()) return false;
    head_[head_size_++] = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    // At once: of bytes that are no frame the rest of the head may never come.
    if (head_size_ == 2 && !BeginsFrame(head_[0], head_[1], masked_)) {
      return Fail(kWsProtocolError);
    }
  }
  return ReadHead();
}

bool WsReader::ReadHead() {
  fin_ = (head_[0] & kFin) != 0;
  op_ = static_cast<WsOp>(head_[0] & kOp);
  const std::size_t short_length = head_[1] & kLength;
  left_ = short_length;
  std::size_t at = 2;
  if (short_length >= 126) {
    const std::size_t extra = short_length == 126 ? 2 : 8;
    left_ = 0;
    for (std::size_t i = 0; i < extra; ++i) left_ = left_ << 8 | head_[at++];
    // The shortest form is the only one.
    if (left_ <= (extra == 2 ? kMostControl : 0xffff) || left_ >> 63 != 0) {
      return Fail(kWsProtocolError);
    }
  }
  if (masked_) std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(at), 4, mask_.begin());
  mask_at_ = 0;
  if (!IsControl(op_)) {
    const bool continues = fragments_ != WsOp::kContinuation;
    if (continues != (op_ == WsOp::kContinuation)) return Fail(kWsProtocolError);
    if (left_ > most_ - message_.size()) return Fail(kWsTooLarge);
    if (!continues) fragments_ = op_;
  }
  in_payload_ = true;
  return true;
}

std::optional<WsEvent> WsReader::Next(std::string_view& bytes) {
  while (failure_ == 0) {
    if (!in_payload_ && !TakeHead(bytes)) return std::nullopt;
    auto& into = IsControl(op_) ? control_ : message_;
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
    const std::size_t begin = into.size();
    into.append(bytes.substr(0, taken));
    if (masked_) ApplyMask(into.data() + begin, taken, mask_, mask_at_);
    mask_at_ = (mask_at_ + taken) % mask_.size();
    left_ -= taken;
    bytes.remove_prefix(taken);
    if (left_ > 0) return std::nullopt;
    in_payload_ = false;
    head_size_ = 0;
    if (auto event = Complete()) return event;
  }
  return std::nullopt;
}

std::optional<WsEvent> WsReader::Complete() {
  if (op_ == WsOp::kClose) return CompleteClose();
  if (IsControl(op_)) return WsEvent{.op = op_, .payload = std::exchange(control_, {})};
  if (!fin_) return std::nullopt;
  const WsOp kind = std::exchange(fragments_, WsOp::kContinuation);
  if (kind == WsOp::kText && !IsUtf8(message_)) {
    Fail(kWsBadText);
    return std::nullopt;
  }
  return WsEvent{.op = kind, .payload = std::exchange(message_, {})};
}

std::optional<WsEvent> WsReader::CompleteClose() {
  WsEvent out{.op = WsOp::kClose, .payload = std::exchange(control_, {}), .code = kWsNoCode};
  if (out.payload.empty()) return out;
  const auto byte = [&out](std::size_t i) { return static_cast<std::uint8_t>(out.payload[i]); };
  const int code = out.payload.size() < 2 ? 0 : byte(0) << 8 | byte(1);
  if (!MayBeSent(code)) {
    Fail(kWsProtocolError);
    return std::nullopt;
  }
  out.code = code;
  out.payload.erase(0, 2);
  if (IsUtf8(out.payload)) return out;
  Fail(kWsBadText);
  return std::nullopt;
}

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<std::uint8_t>(text[i]);
    const std::size_t size = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
    if (size == 0 || size > text.size() - i) return false;
    std::uint32_t point = size == 1 ? lead : lead & (0x7fU >> size);
    for (std::size_t k = 1; k < size; ++k) {
      const auto next = static_cast<std::uint8_t>(text[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3fU);
    }
    const bool overlong = (size == 3 && point < 0x800) || (size == 4 && point < 0x10000);
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    if (overlong || surrogate || point > 0x10ffff) return false;
    i += size;
  }
  return true;
}

std::string WsAccept(std::string_view key) {
  constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455, 1.3
  const std::string text = std::string(key) + std::string(kGuid);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  return ToBase64({reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace muster::net
