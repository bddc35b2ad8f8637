// For the tests of this room: a handler that sends messages back, and a client that waits for them.
//
// The raw parts are for frames that no client of ours would send.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "net/net_testing.h"
#include "net/ws_client.h"
#include "net/ws_frame.h"

namespace muster::net {

inline constexpr WsMask kTestMask = {1, 2, 3, 4};
inline constexpr std::string_view kUpgradeRequest =
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

inline std::string MaskedFrame(WsOp op, std::string_view payload) {
  std::string out;
  AppendFrame(out, op, payload, &kTestMask);
  return out;
}

// For one WebSocket. What comes is sent back as far as the queue allows.
class WsEcho {
 public:
  bool begin_paused = false;

  Handler Handle() {
    return [this](Request, const std::shared_ptr<Exchange>& exchange) {
      auto socket = exchange->Upgrade({.on_message =
                                           [this](std::string message) {
                                             ++messages_;
                                             EXPECT_TRUE(socket_->Send(std::move(message)));
                                           },
                                       .on_closed =
                                           [this](int code, std::string reason) {
                                             closed_.set_value({code, std::move(reason)});
                                           },
                                       .on_drained = [this] { ++drained_; },
                                       .paused = begin_paused});
      if (socket == nullptr) return exchange->Reply({.status = 400});
      socket_ = socket;
      opened_.set_value(socket);
    };
  }

  // Once.
  std::shared_ptr<WebSocket> Socket() { return opened_.get_future().get(); }
  std::pair<int, std::string> AwaitClosed() { return closed_.get_future().get(); }
  void AwaitDrained() const {
    while (drained_ == 0) std::this_thread::yield();
  }
  std::size_t messages() const { return messages_; }

 private:
  std::shared_ptr<WebSocket> socket_;  // the server's thread only
  std::promise<std::shared_ptr<WebSocket>> opened_;
  std::promise<std::pair<int, std::string>> closed_;
  std::atomic<std::size_t> messages_ = 0;
  std::atomic<int> drained_ = 0;
};

inline std::unique_ptr<WsClient> Connected(const Endpoint& endpoint) {
  auto answer = WsClient::Connect(endpoint, {}, kPatienceMs);
  if (!answer || answer->socket == nullptr) {
    ADD_FAILURE() << (answer ? answer->refusal.body : Describe(answer.error()));
    return nullptr;
  }
  return std::move(answer->socket);
}

// The next message, or the end; an empty end with code 0 when the connection is lost.
inline WsClient::Incoming Next(WsClient& client) {
  for (;;) {
    auto got = client.Receive();
    if (!got) return {.bytes = Describe(got.error()), .closed = true};
    if (*got) return std::move(**got);
    if (!client.Wait(kPatienceMs)) {
      ADD_FAILURE() << "neither a message nor an end";
      return {.closed = true};
    }
  }
}

}  // namespace muster::net
