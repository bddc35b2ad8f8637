// Desk: where every call is served: who calls, whether it may, the answer, and the audit trail.
//
// Handlers get the controller and what the caller may do, on the controller's thread, and return a
// value; they never see a socket. A change is answered when it is in the journal, and the rows of
// the audit trail and the key of the request are written in the same transaction, so none of them
// is ever there without the others; a request that is repeated gets its first answer.
// What stays open (events, logs, terminals) is judged again every few seconds by the same rules, so
// a token that is revoked and a role that is taken away end what they had opened; so does a group
// that the account database no longer has its caller in, once that is known here.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/requests.h"
#include "api/seal.h"
#include "api/selection.h"
#include "control/service.h"
#include "net/http_server.h"

namespace muster::api {

using control::Access;
using control::Controller;
using model::DocNode;

struct Answer {
  // Most answers are a document and nothing else.
  Answer(DocNode shown) : node(std::move(shown)) {}  // NOLINT(google-explicit-constructor)
  Answer(DocNode shown, const std::string& etag) : node(std::move(shown)) {
    headers.push_back({"ETag", etag});
  }
  DocNode node;
  std::vector<net::Header> headers;
};

// What a change did, for the audit trail.
struct Trace {
  std::string object;    // "job 17"
  std::string queue;     // whose admins may read of it; empty: admins only
  std::string before{};  // JSON; empty: nothing was there
  std::string after{};
};

struct Changed {
  Answer answer;
  std::vector<Trace> traces;  // empty: nothing was changed after all
  // Instead of `answer`, made when the change is written and the scheduler has seen it.
  std::function<Answer(Controller&)> later{};
  bool once = false;        // the answer is given once and not kept, for it holds a secret
  bool remembered = false;  // its key is in the journal already
};

// The answer of a call that changes a thing by its name.
Changed Acted(const Call& call, const std::string& id, Trace trace, const std::string& etag = {});

class Desk {
 public:
  using Reading = std::function<Result<Answer>(Controller&, const Access&)>;
  using Changing = std::function<Result<Changed>(Controller&, const Access&)>;
  using Still = std::function<bool(Controller&, const Access&)>;

  Desk(control::Service& service, std::string version, int judged_every_ms)
      : service_(service), version_(std::move(version)), judged_every_ms_(judged_every_ms) {}

  void Read(const Call& call, Reading read);
  // A list: all that the caller may see, of which the call selects a page.
  using Listing = std::function<Result<Items>(Controller&, const Access&)>;
  void List(const Call& call, Listing list);
  // `may` is asked before the answer to an earlier request with the same key is given again, for
  // the right may be gone or the token a weaker one. None: that of the operation is enough.
  using May = std::function<Result<void>(Controller&, const Access&)>;
  void Change(const Call& call, int status, Changing change, May may = {});
  // Reads what a stream needs and begins it; whatever goes wrong before that is answered.
  void Begin(const Call& call, std::function<Result<void>(Controller&, const Access&)> begin);
  // Enters the trail, then begins: nothing is opened that is not written down.
  void Enter(const Call& call, std::function<Result<Trace>(Controller&, const Access&)> check,
             std::function<void()> begin);

  // Is ended when its caller is refused or `still` says no. On the controller's thread.
  void Keep(const Call& call, const std::shared_ptr<net::Exchange>& stream, Still still);
  void Keep(const Call& call, std::weak_ptr<net::WebSocket> socket, Still still);

  control::Service& service() { return service_; }
  const std::string& version() const { return version_; }
  const Sealer& sealer() const { return sealer_; }
  // Null until the API is attached to it.
  net::HttpServer* server() const { return server_.load(); }
  void Attach(net::HttpServer& server) { server_ = &server; }
  // Who sent a request, as the account database has it by now; none: not known at the moment.
  // Asked on the server's thread, before the first request is served.
  using Identify = std::function<std::optional<control::Caller>(const net::Request&)>;
  void SetIdentify(Identify identify) { identify_ = std::move(identify); }
  // On the server's thread; from threads that may outlive it, which Close() comes before.
  void Post(std::function<void()> task);
  void Close();

 private:
  struct Open {
    Call call;  // without its exchange, which would keep it open
    Still still;
    std::weak_ptr<net::Exchange> stream;
    std::weak_ptr<net::WebSocket> socket;
    std::uint64_t number = 0;
  };
  using Callers = std::map<std::uint64_t, control::Caller>;  // by the numbers of what is open
  void Keep(Open open);
  void JudgeLater();
  void AskWho();
  void Judge(Controller& control, const Callers& now);

  control::Service& service_;
  std::string version_;
  const int judged_every_ms_;  // what is open
  Sealer sealer_;
  std::atomic<net::HttpServer*> server_ = nullptr;
  std::mutex closing_;
  bool closed_ = false;  // guarded by closing_
  Identify identify_;
  // On the controller's thread.
  std::vector<Open> open_;
  std::uint64_t last_number_ = 0;
  bool judging_ = false;
};

// What a list call asks for, by the document's keys.
Result<Selection> SelectionOf(const Call& call);

// The caller's rights, where they are enough for this operation anywhere at all.
Result<Access> Admit(Controller& control, const Call& call);

}  // namespace muster::api
