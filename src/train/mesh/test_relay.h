// Relay: a stranger on the way between two members, for tests: it reads what one of them sends and
// changes what the other gets.
//
// What the dialer says in its handshake goes through as it is. Of what follows, each frame is
// handed over whole, with its seals, and what is left of it goes on. What the listener says is not
// touched. It ends when one of the two has closed.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "train/mesh/frame.h"
#include "train/mesh/sealing.h"
#include "train/mesh/socket.h"

namespace muster::train {

class Relay {
 public:
  using Change = std::function<void(const FrameHeader& header, std::string& frame)>;

  // Of encrypted frames: of a header with its seal, of all of a frame.
  static constexpr std::size_t kHead = sizeof(FrameHeader) + kSealBytes;
  static std::size_t SizeOf(const FrameHeader& header) {
    return kHead + (header.length > 0 ? header.length + kSealBytes : 0);
  }

  // `to`: the listener. One of the two members must be gone before this is.
  Relay(std::string to, Change change) : to_(std::move(to)), change_(std::move(change)) {
    auto listening = ListenTcp("127.0.0.1");
    EXPECT_TRUE(listening);
    listening_ = std::move(*listening);
    thread_ = std::thread([this] { Run(); });
  }
  ~Relay() { thread_.join(); }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  const std::string& address() const { return listening_.address; }

 private:
  static std::int64_t Soon() { return NowNs() + 20'000'000'000; }

  void Run() {
    EXPECT_TRUE(AwaitSocket(listening_.fd.get(), POLLIN, Soon()));
    const auto from = AcceptOn(listening_.fd.get());
    const auto to = DialTcp(to_, Soon());
    ASSERT_TRUE(from.fd && to);
    std::array<pollfd, 2> both{{{from.fd.get(), POLLIN, 0}, {to->get(), POLLIN, 0}}};
    std::array<char, 65536> piece{};
    while (poll(both.data(), both.size(), -1) > 0) {
      for (std::size_t i = 0; i < both.size(); ++i) {
        if (both[i].revents == 0) continue;
        const ssize_t count = recv(both[i].fd, piece.data(), piece.size(), MSG_DONTWAIT);
        if (count == 0) return;
        if (count < 0 && errno != EAGAIN) return;
        const std::string_view got(piece.data(),
                                   static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (!Send(both[1 - i].fd, i == 0 ? Changed(got) : std::string(got))) return;
      }
    }
  }

  // As much of it as is whole by now.
  std::string Changed(std::string_view got) {
    said_ += got;
    std::string out;
    while (true) {
      FrameHeader header;
      std::uint32_t size = 0;  // of a message of the handshake, behind magic, version and kind
      constexpr std::size_t kSizeAt = 12, kPrefix = 16;
      const bool greets = messages_ < kHandshake;
      if (said_.size() < (greets ? kPrefix : kHead)) return out;
      std::memcpy(&size, said_.data() + kSizeAt, sizeof size);
      std::memcpy(&header, said_.data(), sizeof header);
      const std::size_t whole = greets ? size : SizeOf(header);
      if (said_.size() < whole) return out;
      std::string frame = said_.substr(0, whole);
      said_.erase(0, whole);
      if (!greets) change_(header, frame);
      ++messages_;
      out += frame;
    }
  }

  static bool Send(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      if (!AwaitSocket(fd, POLLOUT, Soon())) return false;
      const ssize_t count = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && errno != EAGAIN) return false;
      bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    return true;
  }

  static constexpr int kHandshake = 2;  // messages of the dialer

  const std::string to_;
  const Change change_;
  Listening listening_;
  std::string said_;
  int messages_ = 0;
  std::thread thread_;
};

}  // namespace muster::train
