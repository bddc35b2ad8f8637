// Tls: certificates and keys from files, and the bytes of a connection, plain or encrypted.
//
// A Wire moves bytes over a socket that somebody else owns and watches; it says what it waits for
// and never waits itself, unless the socket blocks. TLS 1.2 and newer, forward secrecy only, no
// renegotiation, no resumption. A client always checks the chain and the name; there is no way to
// ask it not to. OpenSSL holds no buffers for a connection that is idle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct bio_method_st;
struct ssl_ctx_st;
struct ssl_st;

namespace muster::net {

struct TlsFiles {
  std::string certificate{};  // PEM, the server's first, then what leads to the root
  std::string key{};          // PEM, without a passphrase
};

// When the first certificate of a PEM file ends, since the Unix epoch.
Result<std::int64_t> CertificateEndMs(const std::string& file);

// What connections share; immutable, from any thread.
class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>> ForServer(const TlsFiles& files);
  // Trusts what the system trusts and, when it is not empty, the roots in ca_file (PEM).
  static Result<std::shared_ptr<const TlsContext>> ForClient(const std::string& ca_file);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class Wire;
  TlsContext() = default;
  Result<void> Begin(bool is_server);

  ssl_ctx_st* context_ = nullptr;
  bio_method_st* socket_calls_ = nullptr;
};

class Wire {
 public:
  enum class State {
    kMoved,      // `bytes` of them
    kWantRead,   // nothing for now; on a blocking socket: its time limit is over
    kWantWrite,  // the same
    kEnd,        // the peer has ended its side in good order
    kFailed,     // anything else; a second call fails as well
  };
  struct Moved {
    State state = State::kMoved;
    std::size_t bytes = 0;
  };

  explicit Wire(int socket = -1);
  Wire(Wire&& other) noexcept;
  Wire& operator=(Wire&& other) noexcept;
  ~Wire();

  // From here on it speaks TLS. For clients: `host` is the name or the address that the peer's
  // certificate must be for.
  bool StartServer(std::shared_ptr<const TlsContext> context);
  bool StartClient(std::shared_ptr<const TlsContext> context, const std::string& host);
  Moved Handshake();  // until it says kMoved
  bool encrypted() const { return ssl_ != nullptr; }
  const std::string& why() const { return why_; }  // a handshake failed
  bool untrusted() const { return untrusted_; }    // because nobody here knows who signed it

  // `into` of 16 KiB or more takes all that is buffered here, so that waiting for the socket is
  // enough; nothing is left behind.
  Moved Read(char* into, std::size_t most);
  // Asked again after kWantWrite, `bytes` must begin with the same ones.
  Moved Write(std::string_view bytes);
  // Whether a kept connection is open and nothing has come that nobody asked for.
  bool Quiet();
  void EndWriting();

 private:
  friend class TlsContext;
  struct Plug {
    int socket = -1;
    int flags = 0;
  };
  struct Calls;  // what OpenSSL uses instead of read and write

  bool Start(std::shared_ptr<const TlsContext> context);
  Moved Outcome(int returned);

  std::unique_ptr<Plug> plug_;  // OpenSSL knows its address
  std::shared_ptr<const TlsContext> context_;
  ssl_st* ssl_ = nullptr;
  bool failed_ = false;
  std::string why_;
  bool untrusted_ = false;
};

}  // namespace muster::net
