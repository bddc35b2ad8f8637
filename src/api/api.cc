#include "api/api.h"

#include <malloc.h>

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <vector>

#include "api/cluster.h"
#include "api/desk.h"
#include "api/enter.h"
#include "api/jobs.h"
#include "api/logs.h"
#include "api/meta.h"
#include "api/meter.h"
#include "api/metrics.h"
#include "api/past.h"
#include "api/people.h"
#include "api/reservations.h"
#include "api/router.h"
#include "api/runs.h"
#include "api/simulations.h"
#include "api/submit.h"
#include "api/watch.h"
#include "api/worker.h"

namespace muster::api {
namespace {

constexpr std::string_view kPrefix = "/api/v1";
constexpr std::size_t kQuickBytes = std::size_t{256} << 10;  // read as a document at once
constexpr std::size_t kBodiesWaiting = 256;
constexpr std::size_t kPlansWaiting = 64;
constexpr std::size_t kPlansOfOne = 2;
constexpr std::size_t kSumsWaiting = 16;
constexpr std::size_t kStrangersBytes = std::size_t{64} << 10;  // of a body without a token

std::string_view Below(std::string_view path) {
  if (path == "/metrics") return path;
  if (!path.starts_with(kPrefix)) return "";
  path.remove_prefix(kPrefix.size());
  return path.starts_with('/') ? path : "";
}

using Handler = std::function<void(Desk&, const Call&)>;

const std::map<std::string, Handler>& Handlers() {
  static const std::map<std::string, Handler> handlers = {
      {"listJobs", ListJobs},
      {"submitJobs", SubmitJobs},
      {"getJob", GetJob},
      {"editJob", EditJob},
      {"cancelJob", ActOnJob},
      {"suspendJob", ActOnJob},
      {"resumeJob", ActOnJob},
      {"holdJob", ActOnJob},
      {"releaseJob", ActOnJob},
      {"requeueJob", ActOnJob},
      {"checkpointJob", ActOnJob},
      {"scaleJob", ActOnJob},
      {"prioritizeJob", ActOnJob},
      {"explainJob", ExplainJob},
      {"listJobEvents", ListJobEvents},
      {"listWorkers", ListWorkers},
      {"listArrays", ListArrays},
      {"listJobDecisions", ListJobDecisions},
      {"listCheckpoints", ListCheckpoints},
      {"readLogs", ReadLogs},
      {"attachJob", AttachJob},
      {"execJob", ExecJob},
      {"forwardPort", ForwardPort},
      {"listNodes", ListNodes},
      {"getNode", GetNode},
      {"cordonNode", MarkNode},
      {"drainNode", MarkNode},
      {"uncordonNode", MarkNode},
      {"listGpus", ListGpus},
      {"listPools", ListPools},
      {"getTopology", GetTopology},
      {"listQueues", ListQueues},
      {"applyQueues", ApplyQueues},
      {"getQueue", GetQueue},
      {"putQueue", PutQueue},
      {"deleteQueue", DeleteQueue},
      {"listPolicies", ListPolicies},
      {"getPolicy", GetPolicy},
      {"applyPolicy", ApplyPolicy},
      {"undoPolicy", UndoPolicy},
      {"listReservations", ListReservations},
      {"getReservation", GetReservation},
      {"createReservation", CreateReservation},
      {"putReservation", PutReservation},
      {"deleteReservation", DeleteReservation},
      {"listRuns", ListRuns},
      {"getRun", GetRun},
      {"listDecisions", ListDecisions},
      {"listAudit", ListAudit},
      {"listUsers", ListUsers},
      {"getUser", GetUser},
      {"putUser", PutUser},
      {"deleteUser", DeleteUser},
      {"listTokens", ListTokens},
      {"getToken", GetToken},
      {"createToken", CreateToken},
      {"revokeToken", RevokeToken},
      {"whoAmI", WhoAmI},
      {"exportSnapshot", ExportSnapshot},
      {"getHealth", GetHealth},
      {"getReady", GetReady},
      {"getVersion", GetVersion},
  };
  return handlers;
}

}  // namespace

struct Api::Impl {
  Impl(control::Service& service, Clock& with, Router routes, ApiOptions options, ApiSeams seams)
      : router(std::move(routes)),
        desk(service, options.version, seams.judged_every_ms),
        watch(desk),
        accounts(
            tokens, with, [this](auto task) { desk.Post(std::move(task)); },
            std::move(seams.look_up)),
        simulations(service, with, {std::move(options.traces), options.version}),
        meter(std::make_shared<Meter>(with)) {
    desk.SetIdentify([this](const net::Request& request) -> std::optional<control::Caller> {
      auto identity = accounts.Of(request);
      if (!identity) return std::nullopt;
      if (*identity) return std::move((*identity)->caller);
      (void)accounts.Ask(request, [] {});  // known when it is asked for the next time
      return std::nullopt;
    });
  }

  Router router;
  Desk desk;
  Watch watch;
  TokenBook tokens;
  Accounts accounts;
  control::Simulations simulations;  // before the clerk, who reads for it
  Worker planner{kPlansWaiting, kPlansOfOne};
  Worker clerk{kSumsWaiting, kPlansOfOne};
  Worker reader{kBodiesWaiting};
  std::shared_ptr<Meter> meter;
  std::map<std::string, Handler> handlers;
};

Result<std::unique_ptr<Api>> Api::Make(control::Service& service, Clock& clock, ApiOptions options,
                                       ApiSeams seams) {
  auto router = Router::Make(OpenApiText());
  if (!router) return tl::unexpected(router.error());
  auto impl = std::make_unique<Impl>(service, clock, std::move(*router), std::move(options),
                                     std::move(seams));
  impl->handlers = Handlers();
  impl->handlers["planJob"] = [i = impl.get()](Desk& desk, const Call& call) {
    PlanJob(desk, i->planner, call);
  };
  impl->handlers["planWaitingJob"] = [i = impl.get()](Desk& desk, const Call& call) {
    PlanWaitingJob(desk, i->planner, call);
  };
  impl->handlers["getUsage"] = [i = impl.get()](Desk& desk, const Call& call) {
    GetUsage(desk, i->clerk, call);
  };
  impl->handlers["exportPast"] = [i = impl.get()](Desk& desk, const Call& call) {
    ExportPast(desk, i->clerk, call);
  };
  const auto simulate = [i = impl.get()](auto call_of) {
    return [i, call_of](Desk& desk, const Call& call) { call_of(desk, i->simulations, call); };
  };
  impl->handlers["createSimulation"] = [i = impl.get()](Desk& desk, const Call& call) {
    BeginSimulation(desk, i->clerk, i->simulations, call);
  };
  impl->handlers["listSimulations"] = simulate(ListSimulations);
  impl->handlers["getSimulation"] = simulate(GetSimulation);
  impl->handlers["getSimulationReport"] = simulate(GetSimulationReport);
  impl->handlers["deleteSimulation"] = simulate(DeleteSimulation);
  impl->handlers["watchEvents"] = [i = impl.get()](Desk&, const Call& c) { i->watch.Events(c); };
  impl->handlers["getOpenApi"] = [i = impl.get()](Desk& desk, const Call& call) {
    GetOpenApi(desk, call, i->router.document());
  };
  impl->handlers["getMetrics"] = [i = impl.get()](Desk& desk, const Call& call) {
    GetMetrics(desk, call, i->meter, i->watch.watchers());
  };
  for (const auto& operation : impl->router.operations()) {
    if (!impl->handlers.contains(operation.id)) {
      return Fail(ErrorCode::kInternal, "nobody handles the call " + operation.id);
    }
  }
  if (impl->handlers.size() != impl->router.operations().size()) {
    return Fail(ErrorCode::kInternal, "a handler is in no call of the OpenAPI document");
  }
  std::promise<void> filled;
  service.Read([&](Controller& control) {
    impl->tokens.Fill(control.state());
    filled.set_value();
  });
  filled.get_future().wait();
  return std::unique_ptr<Api>(new Api(std::move(impl)));
}

Api::Api(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Api::~Api() = default;

void Api::Attach(net::HttpServer& server) { impl_->desk.Attach(server); }
void Api::Close() { impl_->desk.Close(); }

std::size_t Api::BodyLimit(const net::Request& head) const {
  const auto match = impl_->router.Find(head.method, Below(head.path));
  if (!match) return kStrangersBytes;  // read, to be told that there is no such call
  const auto most = match->operation->most_body_bytes;
  const auto* header = head.Find("Authorization");
  const bool known =
      header == nullptr ? head.peer.has_value() : impl_->tokens.Find(*header).has_value();
  return known ? most : std::min(most, kStrangersBytes);
}

net::Response Api::Refusal(int status, const std::string& why) {
  const bool busy = status == 429 || status == 503;
  const auto code = status == 403   ? ErrorCode::kDenied
                    : status == 408 ? ErrorCode::kTimeout
                    : status == 413 ? ErrorCode::kInvalid
                    : status == 500 ? ErrorCode::kInternal
                    : busy          ? ErrorCode::kUnavailable
                                    : ErrorCode::kUsage;
  const char* hint = status == 413   ? "send less at once"
                     : status == 500 ? "please report it, with what the daemon's log says"
                     : busy          ? "try again after the time in Retry-After"
                                     : "";
  return ErrorResponse({code, why, hint}, status);
}

void Api::Refused(int status) { impl_->meter->Refused(status); }

void Api::Written(const control::Controller& control, std::span<const state::Record> records) {
  std::vector<Event> events;
  events.reserve(records.size());
  for (const auto& record : records) {
    auto body = model::DecodeEvent(record.body);
    if (!body) continue;
    impl_->tokens.Follow(control.state(), *body);
    events.push_back({&record, std::move(*body)});
  }
  impl_->watch.Written(control, events);
}

void Api::Handle(net::Request request, std::shared_ptr<net::Exchange> exchange) {
  auto match = impl_->router.Find(request.method, Below(request.path));
  exchange = impl_->meter->Watch(std::move(exchange), match ? match->operation->id : "");
  if (!match) {
    Error error = match.error();
    if (error.code == ErrorCode::kUsage) error.path = "method";
    return ReplyError(*exchange, error);
  }
  if (impl_->desk.server() == nullptr) {
    return ReplyError(*exchange, {ErrorCode::kUnavailable, "still starting", "try again"});
  }
  // The head of an answer is the same whether it goes on for long or not.
  if (request.method == "HEAD") request.query.erase("follow");
  Call call;
  call.match = std::move(*match);
  call.request = std::make_shared<const net::Request>(std::move(request));
  call.exchange = std::move(exchange);
  if (call.operation().open) return Serve(call);
  Identify(std::move(call));
}

void Api::Identify(Call call) {
  auto identity = impl_->accounts.Of(*call.request);
  if (!identity) return ReplyError(*call.exchange, identity.error());
  if (!*identity) {
    const auto asked = impl_->accounts.Ask(*call.request, [this, call] { Identify(call); });
    if (!asked) ReplyError(*call.exchange, asked.error());
    return;
  }
  call.caller = std::move((*identity)->caller);
  call.token = std::move((*identity)->token);
  Serve(call);
}

void Api::Serve(const Call& call) {
  if (auto sound = Router::Check(call.operation(), *call.request); !sound) {
    return ReplyError(*call.exchange, sound.error());
  }
  const auto& handler = impl_->handlers.at(call.operation().id);
  if (call.request->body.empty()) return handler(impl_->desk, call);
  // A body is looked at only when its sender may make the call at all.
  impl_->desk.Begin(call, [this, call, &handler](Controller&, const Access&) -> Result<void> {
    const auto read = [this, call, &handler] { handler(impl_->desk, call); };
    const auto read_long = [read] {
      read();
      ::malloc_trim(0);  // a thread keeps what it once had, and this may have been a lot
    };
    if (call.request->body.size() <= kQuickBytes) {
      impl_->desk.server()->Post(read);
    } else if (!impl_->reader.Do(read_long)) {
      return Fail(ErrorCode::kUnavailable, "too many large requests wait to be read",
                  "try again in a moment");
    }
    return {};
  });
}

}  // namespace muster::api
