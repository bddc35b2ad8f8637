#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/files.h"

namespace muster::net {
namespace {

constexpr std::size_t kLargestPem = std::size_t{4} << 20;

std::string LastReason() {
  const unsigned long code = ERR_peek_last_error();
  const char* const text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "no reason is known" : text;
}

int Clamp(std::size_t bytes) {
  return static_cast<int>(std::min<std::size_t>(bytes, std::size_t{INT_MAX}));
}

// Without this OpenSSL would ask at the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

bool IsAddress(const std::string& host) {
  in6_addr out{};
  return inet_pton(AF_INET, host.c_str(), &out) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &out) == 1;
}

// OpenSSL's own words for a file that is not there are of no use to anybody.
Result<void> MustBeReadable(const std::string& path) {
  if (auto text = ReadFile(path, kLargestPem); !text) return tl::unexpected(text.error());
  return {};
}

}  // namespace

// OpenSSL's own calls would raise SIGPIPE on a closed connection and end the program.
struct Wire::Calls {
  static ssize_t Receive(const Plug& plug, char* into, std::size_t most) {
    ssize_t got = 0;
    do {
      got = recv(plug.socket, into, most, plug.flags);
    } while (got < 0 && errno == EINTR);
    return got;
  }

  static ssize_t Send(const Plug& plug, const char* from, std::size_t size) {
    ssize_t sent = 0;
    do {
      sent = send(plug.socket, from, size, plug.flags | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent;
  }

  static const Plug& Of(BIO* bio) { return *static_cast<const Plug*>(BIO_get_data(bio)); }

  static int Read(BIO* bio, char* into, int most) {
    BIO_clear_retry_flags(bio);
    const ssize_t got = Receive(Of(bio), into, static_cast<std::size_t>(most));
    if (got < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
    if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return static_cast<int>(got);
  }

  static int Write(BIO* bio, const char* from, int size) {
    BIO_clear_retry_flags(bio);
    const ssize_t sent = Send(Of(bio), from, static_cast<std::size_t>(size));
    if (sent < 0 && errno == EAGAIN) BIO_set_retry_write(bio);
    return static_cast<int>(sent);
  }

  static long Control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }
};

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
  BIO_meth_free(socket_calls_);
}

Result<void> TlsContext::Begin(bool is_server) {
  ERR_clear_error();
  context_ = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
  socket_calls_ = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
  if (context_ == nullptr || socket_calls_ == nullptr ||
      SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(context_, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
    return Fail(ErrorCode::kUnavailable, "TLS cannot be set up: " + LastReason());
  }
  BIO_meth_set_read(socket_calls_, Wire::Calls::Read);
  BIO_meth_set_write(socket_calls_, Wire::Calls::Write);
  BIO_meth_set_ctrl(socket_calls_, Wire::Calls::Control);
  SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                    SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(context_, 0);
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
  return {};
}

Result<std::int64_t> CertificateEndMs(const std::string& file) {
  auto text = ReadFile(file, std::size_t{1} << 20);
  if (!text) return tl::unexpected(text.error());
  const std::unique_ptr<BIO, decltype(&BIO_free)> bytes(
      BIO_new_mem_buf(text->data(), static_cast<int>(text->size())), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr), X509_free);
  std::tm end{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    ERR_clear_error();
    return Fail(ErrorCode::kInvalid, file + " holds no certificate", "it must be PEM");
  }
  return std::int64_t{::timegm(&end)} * 1000;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::ForServer(const TlsFiles& files) {
  for (const auto& path : {files.certificate, files.key}) {
    if (auto found = MustBeReadable(path); !found) return tl::unexpected(found.error());
  }
  const std::shared_ptr<TlsContext> out(new TlsContext);
  if (auto begun = out->Begin(true); !begun) return tl::unexpected(begun.error());
  SSL_CTX* const context = out->context_;
  SSL_CTX_set_default_passwd_cb(context, NoPassphrase);
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return Fail(ErrorCode::kInvalid,
                files.certificate + " holds no certificate that can be used: " + LastReason(),
                "it must be PEM: the server's certificate first, then those that lead to the root");
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return Fail(ErrorCode::kInvalid,
                files.key + " is not the key of " + files.certificate + ": " + LastReason(),
                "it must be the PEM key of that certificate, without a passphrase");
  }
  return out;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::ForClient(const std::string& ca_file) {
  if (!ca_file.empty()) {
    if (auto found = MustBeReadable(ca_file); !found) return tl::unexpected(found.error());
  }
  const std::shared_ptr<TlsContext> out(new TlsContext);
  if (auto begun = out->Begin(false); !begun) return tl::unexpected(begun.error());
  SSL_CTX_set_verify(out->context_, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_default_verify_paths(out->context_);
  if (!ca_file.empty() && SSL_CTX_load_verify_file(out->context_, ca_file.c_str()) != 1) {
    return Fail(ErrorCode::kInvalid,
                ca_file + " holds no certificate that can be used: " + LastReason(),
                "it must hold the roots to trust, as PEM");
  }
  return out;
}

Wire::Wire(int socket) : plug_(std::make_unique<Plug>(Plug{.socket = socket})) {}

Wire::Wire(Wire&& other) noexcept { *this = std::move(other); }

Wire& Wire::operator=(Wire&& other) noexcept {
  std::swap(plug_, other.plug_);
  std::swap(context_, other.context_);
  std::swap(ssl_, other.ssl_);
  std::swap(failed_, other.failed_);
  std::swap(why_, other.why_);
  return *this;
}

Wire::~Wire() { SSL_free(ssl_); }

bool Wire::Start(std::shared_ptr<const TlsContext> context) {
  context_ = std::move(context);
  ssl_ = SSL_new(context_->context_);
  BIO* const bio = ssl_ == nullptr ? nullptr : BIO_new(context_->socket_calls_);
  if (bio == nullptr) return false;
  BIO_set_data(bio, plug_.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);  // takes it
  return true;
}

bool Wire::StartServer(std::shared_ptr<const TlsContext> context) {
  if (!Start(std::move(context))) return false;
  SSL_set_accept_state(ssl_);
  return true;
}

bool Wire::StartClient(std::shared_ptr<const TlsContext> context, const std::string& host) {
  if (!Start(std::move(context))) return false;
  SSL_set_connect_state(ssl_);
  if (IsAddress(host)) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), host.c_str()) == 1;
  }
  SSL_set_hostflags(ssl_, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set_tlsext_host_name(ssl_, host.c_str()) == 1 &&
         SSL_set1_host(ssl_, host.c_str()) == 1;
}

Wire::Moved Wire::Outcome(int returned) {
  if (returned > 0) return {.bytes = static_cast<std::size_t>(returned)};
  switch (SSL_get_error(ssl_, returned)) {
    case SSL_ERROR_WANT_READ:
      return {.state = State::kWantRead};
    case SSL_ERROR_WANT_WRITE:
      return {.state = State::kWantWrite};
    case SSL_ERROR_ZERO_RETURN:
      return {.state = State::kEnd};
    default:
      failed_ = true;  // after this even SSL_shutdown is forbidden
      return {.state = State::kFailed};
  }
}

Wire::Moved Wire::Handshake() {
  ERR_clear_error();
  const auto out = Outcome(SSL_do_handshake(ssl_));
  if (out.state != State::kFailed) return out;
  const long verdict = SSL_get_verify_result(ssl_);
  untrusted_ = verdict == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
               verdict == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
               verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
               verdict == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
  why_ = verdict == X509_V_OK ? LastReason() : X509_verify_cert_error_string(verdict);
  return out;
}

Wire::Moved Wire::Read(char* into, std::size_t most) {
  if (ssl_ != nullptr) {
    if (failed_) return {.state = State::kFailed};
    ERR_clear_error();
    return Outcome(SSL_read(ssl_, into, Clamp(most)));
  }
  const ssize_t got = Calls::Receive(*plug_, into, most);
  if (got > 0) return {.bytes = static_cast<std::size_t>(got)};
  if (got == 0) return {.state = State::kEnd};
  return {.state = errno == EAGAIN ? State::kWantRead : State::kFailed};
}

Wire::Moved Wire::Write(std::string_view bytes) {
  if (ssl_ != nullptr) {
    if (failed_) return {.state = State::kFailed};
    ERR_clear_error();
    return Outcome(SSL_write(ssl_, bytes.data(), Clamp(bytes.size())));
  }
  const ssize_t sent = Calls::Send(*plug_, bytes.data(), bytes.size());
  if (sent >= 0) return {.bytes = static_cast<std::size_t>(sent)};
  return {.state = errno == EAGAIN ? State::kWantWrite : State::kFailed};
}

bool Wire::Quiet() {
  char byte = 0;
  plug_->flags = MSG_DONTWAIT;
  bool quiet = false;
  if (ssl_ == nullptr) {
    quiet = recv(plug_->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  } else if (!failed_) {
    // Not a peek at the socket: a ticket, which nobody asked for either, may lie there.
    ERR_clear_error();
    quiet = Outcome(SSL_peek(ssl_, &byte, 1)).state == State::kWantRead;
  }
  plug_->flags = 0;
  return quiet;
}

void Wire::EndWriting() {
  if (ssl_ != nullptr && !failed_ && SSL_is_init_finished(ssl_) != 0) {
    ERR_clear_error();
    SSL_shutdown(ssl_);
  }
  shutdown(plug_->socket, SHUT_WR);
}

}  // namespace muster::net
