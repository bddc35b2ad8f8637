// Connection: one client's requests, from bytes to the handler and from answers to bytes.
//
// Lives on the server's thread, in the Hall that all connections share. Asio is asked only when a
// descriptor is ready; reading and writing are plain calls of the Wire. That needs no buffer per
// waiting connection and spares the compiler the composed operations.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "net/exchange.h"
#include "net/http_server.h"
#include "net/peers.h"
#include "net/tls.h"
#include "net/ws_session.h"

namespace muster::net {

using Descriptor =
    boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

class Connection;

// What connections see of the server. Used on the server's thread only.
struct Hall {
  boost::asio::io_context context{1};
  ServerOptions options;
  Handler handler;
  std::shared_ptr<Manners> manners = std::make_shared<Manners>();
  std::shared_ptr<Waker> waker;
  SystemClock clock;
  std::string scratch = std::string(std::size_t{64} << 10, '\0');
  Peers peers;
  std::size_t large_bytes = 0;   // of bodies, beyond what each may have without asking
  std::size_t unsent_bytes = 0;  // of all answers
  bool cutting = false;          // of those that are too much
  bool ending = false;           // the last connection that closes is the end
  std::uint64_t last_id = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Connection>> connections;
  std::atomic<std::size_t> open = 0;  // how many they are, for other threads

  std::int64_t NowMs() { return clock.MonotonicNs() / 1'000'000; }
};

struct Caller {
  std::optional<Peer> peer{};  // over a Unix socket
  std::string remote{};        // over TCP
  std::string key{};           // among the peers; empty: not counted there
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `tls` null: in the clear.
  Connection(Hall& hall, std::uint64_t id, Descriptor socket, Caller caller,
             std::shared_ptr<const TlsContext> tls);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void AwaitInput();
  void Refuse(int status, std::string_view why, std::vector<Header> headers = {});
  void Wake();  // there is something to send, or to read again
  void Tick(std::int64_t now_ms);
  void Leave();  // the server ends
  void Close();
  std::size_t unsent() const { return unsent_; }
  const std::string& peer_key() const { return caller_.key; }

 private:
  enum class Stage { kGreeting, kHandshake, kTalking };
  struct Arriving;  // a request that is not complete

  void OnReadable();
  bool Greet();
  void ShakeHands();
  void OnEnd();
  void Process(std::string_view fresh);
  std::size_t Parse(std::string_view data);
  void CheckHead();
  bool TooFast();
  bool HoldBody();
  void DropBody();
  void Dispatch();
  void Upgrade();
  void ReadFrames(std::string_view fresh);
  void OnFrame(WsEvent event);
  void AfterFrames(bool sent);
  void TickFrames(std::int64_t now_ms);
  void TellClosed();
  void AwaitOutput();
  void Flush();
  void Send();
  bool FillOutput();
  void CountUnsent();
  bool HasInput();
  void AfterAnswer(Outbox::End end);
  void ShutDown();
  std::int64_t PatienceMs() const;

  Hall& hall_;
  const std::uint64_t id_;
  Descriptor socket_;
  Wire wire_;
  const Caller caller_;
  std::shared_ptr<const TlsContext> tls_;  // until the client's first byte
  Stage stage_;
  std::unique_ptr<Arriving> arriving_;
  std::string input_;               // read, but not parsed yet
  std::shared_ptr<Outbox> outbox_;  // while a request is being answered
  std::shared_ptr<WsSession> ws_;   // from the upgrade on
  std::string output_;
  std::size_t written_ = 0;  // of output_
  std::size_t drained_ = 0;
  std::size_t held_ = 0;    // of hall_.large_bytes
  std::size_t unsent_ = 0;  // of hall_.unsent_bytes
  std::int64_t since_ms_;   // the last step forward
  bool awaits_input_ = false;
  bool awaits_output_ = false;
  bool reads_when_writable_ = false;
  bool parsing_ = false;
  bool ended_ = false;     // the peer sends no more
  bool last_ = false;      // what is in output_ is the last we say
  bool draining_ = false;  // we have said it
  bool closed_ = false;
};

}  // namespace muster::net
