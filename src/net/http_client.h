// HttpClient: one blocking HTTP/1.1 connection to a daemon, made for short-lived programs.
//
// No threads, no event loop: a request on a kept connection is a peek, a send and a receive. A
// kept connection that the server has closed meanwhile is replaced once, but only while it is sure
// that repeating does no harm: nothing of the request was sent, or the method may be repeated and
// no byte of the answer had come. Not thread-safe; one client per thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "net/dial.h"
#include "net/http.h"

namespace muster::net {

class HttpClient {
 public:
  explicit HttpClient(Endpoint endpoint);

  // timeout_ms is for the whole of it; 0: none. A status of any kind is an answer, not an error.
  Result<Response> Send(const Request& request, int timeout_ms);

  // Hands out the body of a good answer (status below 300) as it comes; on_chunk returns false to
  // stop. The body of any other answer is in the response. timeout_ms is per read; 0: none.
  Result<Response> Stream(const Request& request, int timeout_ms,
                          const std::function<bool(std::string_view)>& on_chunk);

  // For a request that asks for another protocol: with status 101 the connection is handed over,
  // with the bytes that came behind the answer; with any other it is an answer as from Send().
  struct Switched {
    Response response{};
    Line line{};
    std::string ahead{};
  };
  Result<Switched> Switch(const Request& request, int timeout_ms);

 private:
  struct Call;  // one request under way

  Result<Response> Perform(Call& call);
  Result<void> Connect(Call& call);
  Result<void> SendAll(Call& call);
  Result<Response> ReadAnswer(Call& call);
  void LimitWait(int option, int& present_ms, int timeout_ms);
  tl::unexpected<Error> Lost(const std::string& how) const;
  tl::unexpected<Error> Late() const;

  Endpoint endpoint_;
  std::string where_;  // for messages
  SystemClock clock_;
  std::shared_ptr<const TlsContext> tls_;  // once it was needed
  Line line_;
  int receive_timeout_ms_ = 0;  // what the socket is set to
  int send_timeout_ms_ = 0;
};

}  // namespace muster::net
