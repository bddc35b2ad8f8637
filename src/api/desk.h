// Desk: where every call is served: who calls, whether it may, the answer, and the audit trail.
//
// Handlers get the controller and what the caller may do, on the controller's thread, and return a
// value; they never see a socket. A change is answered when it is in the journal, and the row of
// the audit trail is written in the same transaction, so neither is ever there without the other.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api/requests.h"
#include "control/service.h"
#include "net/http_server.h"

namespace muster::api {

using control::Access;
using control::Controller;
using model::DocNode;

struct Answer {
  Answer(DocNode shown) : node(std::move(shown)) {}
  Answer(DocNode shown, const std::string& etag) : node(std::move(shown)) {
    headers.push_back({"ETag", etag});
  }
  DocNode node;
  std::vector<net::Header> headers;
};

// What a change did, for the caller and for the audit trail.
struct Changed {
  Answer answer;
  std::string object;  // "job 17"
  std::string queue;   // whose admins may read of it; empty: admins only
  std::string before;  // JSON; empty: nothing was there
  std::string after;
};

class Desk {
 public:
  using Reading = std::function<Result<Answer>(Controller&, const Access&)>;
  using Changing = std::function<Result<Changed>(Controller&, const Access&)>;

  Desk(control::Service& service, std::string version)
      : service_(service), version_(std::move(version)) {}

  void Read(const Call& call, Reading read);
  void Change(const Call& call, int status, Changing change);
  // Reads what a stream needs and begins it; whatever goes wrong before that is answered.
  void Begin(const Call& call, std::function<Result<void>(Controller&, const Access&)> begin);

  control::Service& service() { return service_; }
  const std::string& version() const { return version_; }
  net::HttpServer* server = nullptr;  // set before the first request

 private:
  control::Service& service_;
  std::string version_;
};

// The caller's rights, where they are enough for this operation anywhere at all.
Result<Access> Admit(Controller& control, const Call& call);

}  // namespace muster::api
