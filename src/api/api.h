// Api: the REST interface, in front of the controller.
//
// The OpenAPI document says which calls there are and what they take; each has one handler here.
// Translates requests into commands and views into JSON, and decides nothing. Bytes of logs,
// streams of events and terminals are moved on the server's thread, off the controller's. Errors
// are application/problem+json with our code, a message, a hint and the place that is meant.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "api/identity.h"
#include "base/clock.h"
#include "control/service.h"
#include "net/http_server.h"

namespace muster::api {

struct Call;

struct ApiOptions {
  std::string version;
  std::string traces = {};  // a folder whose files simulations may name; empty: none
};

// What a test replaces.
struct ApiSeams {
  Accounts::LookUp look_up = Accounts::LookUpAccount;
  int judged_every_ms = 2'000;  // what is open
};

class Api {
 public:
  // The error: the document cannot be read, or has a call that nobody handles.
  static Result<std::unique_ptr<Api>> Make(control::Service& service, Clock& clock,
                                           ApiOptions options, ApiSeams seams = {});
  ~Api();

  // Streams need the server's timer; set before the first request.
  void Attach(net::HttpServer& server);
  // Before that server ends.
  void Close();
  void Handle(net::Request request, std::shared_ptr<net::Exchange> exchange);
  // How large a body may be, before it is read.
  std::size_t BodyLimit(const net::Request& head) const;
  // The form of what the server refuses by itself, before it is a call.
  static net::Response Refusal(int status, const std::string& why);
  void Refused(int status);  // for the figures
  // On the controller's thread, after each commit.
  void Written(const control::Controller& control, std::span<const state::Record> records);

 private:
  struct Impl;
  explicit Api(std::unique_ptr<Impl> impl);
  void Identify(Call call);
  void Serve(const Call& call);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::api
