#include "api/desk.h"

#include <algorithm>
#include <optional>

namespace muster::api {
namespace {

constexpr int kWsPolicy = 1008;

// It was known when the call came; whether it still is only the controller's state can say.
Result<void> CheckToken(Controller& control, const Call& call) {
  if (call.token.empty()) return {};
  const auto found = control.state().tokens().find(call.token);
  if (found == control.state().tokens().end()) return Nobody("the token has been revoked");
  const auto expires_ms = found->second.expires_ms;
  if (expires_ms == 0 || control.NowMs() < expires_ms) return {};
  return Nobody("token " + found->second.name + " has expired");
}

void Record(Controller& control, const Call& call, const Trace& trace) {
  control.Audit({0, 0, call.caller.user, call.caller.from, call.operation().id, trace.object,
                 trace.queue, trace.before, trace.after});
}

}  // namespace

Result<Selection> SelectionOf(const Call& call) {
  Selection::Wish wish{call.Text("filter"), call.Text("sort"), call.Text("cursor"),
                       call.Text("fields")};
  wish.limit =
      static_cast<std::size_t>(call.Number("limit", static_cast<std::int64_t>(wish.limit)));
  return Selection::Make(call.operation(), std::move(wish));
}

Result<Access> Admit(Controller& control, const Call& call) {
  // Nobody is told that nothing is there, or that a token is unknown, because the journal is away.
  if (!control.knows_state()) {
    return Fail(ErrorCode::kUnavailable, "the journal cannot be read at the moment",
                "jobs run on; the daemon's own log says why");
  }
  if (auto known = CheckToken(control, call); !known) return tl::unexpected(known.error());
  Access access(control.state(), control.members(), call.caller);
  const auto wanted = call.operation().role;
  if (wanted == control::Role::kNone) return access;
  if (wanted == control::Role::kAdmin) {
    if (auto may = access.MayAdministerAll(); !may) return tl::unexpected(may.error());
    return access;
  }
  if (auto may = access.MayView(); !may) return tl::unexpected(may.error());
  if (access.Strongest() >= wanted) return access;
  return Fail(ErrorCode::kDenied,
              "this needs the role " + std::string(Name(wanted)) + "; you are " +
                  std::string(Name(access.Strongest())),
              "`muster whoami` shows your roles");
}

void Desk::Post(std::function<void()> task) {
  const std::lock_guard lock(closing_);
  if (!closed_) server()->Post(std::move(task));
}

void Desk::Close() {
  const std::lock_guard lock(closing_);
  closed_ = true;
}

Changed Acted(const Call& call, const std::string& id, Trace trace, const std::string& etag) {
  DocNode node = model::MapNode();
  Put(node, "id", model::TextNode(id));
  if (call.dry_run()) Put(node, "dry_run", model::BoolNode(true));
  if (etag.empty()) return {std::move(node), {std::move(trace)}};
  return {Answer(std::move(node), etag), {std::move(trace)}};
}

void Desk::Read(const Call& call, Reading read) {
  service_.Read([call, read = std::move(read)](Controller& control) {
    auto access = Admit(control, call);
    if (!access) return ReplyError(*call.exchange, access.error());
    auto answer = read(control, *access);
    if (!answer) return ReplyError(*call.exchange, answer.error());
    ReplyNode(*call.exchange, answer->node, 200, std::move(answer->headers));
  });
}

void Desk::List(const Call& call, Listing list) {
  auto selection = SelectionOf(call);
  if (!selection) return ReplyError(*call.exchange, selection.error());
  Read(call,
       [selection = std::move(*selection), list = std::move(list)](
           Controller& control, const Access& access) -> Result<Answer> {
         auto items = list(control, access);
         if (!items) return tl::unexpected(items.error());
         auto page = selection.Page(std::move(*items), control.state().revision());
         if (!page) return tl::unexpected(page.error());
         return std::move(*page);
       });
}

void Desk::Begin(const Call& call, std::function<Result<void>(Controller&, const Access&)> begin) {
  service_.Read([call, begin = std::move(begin)](Controller& control) {
    auto access = Admit(control, call);
    auto begun = access ? begin(control, *access) : tl::unexpected(access.error());
    if (!begun) ReplyError(*call.exchange, begun.error());
  });
}

namespace {

// What became of a change, on its way from the work to the answer.
struct Outcome {
  std::optional<Result<Changed>> made;
  std::optional<model::RequestAnswered> before;  // an earlier request with the same key
  Controller* control = nullptr;
};

Error SaidOnce(const model::RequestAnswered& before) {
  Error error{ErrorCode::kConflict,
              "this request was carried out before: it made " + before.object +
                  ", whose secret was in the first answer and is not kept",
              "where that answer is lost, revoke it and make another with a new key"};
  error.path = "Idempotency-Key";
  return error;
}

void CarryOut(Controller& control, const Call& call, int status, const std::string& digest,
              const Desk::Changing& change, const Desk::May& may, Outcome& outcome) {
  auto access = Admit(control, call);
  if (!access) {
    outcome.made = tl::unexpected(access.error());
    return;
  }
  const auto& user = access->caller().user;
  const auto key = KeyOf(call);
  const auto known = control.Repeated(user, key, digest);
  if (!known) {
    outcome.made = tl::unexpected(known.error());
    return;
  }
  if (*known != nullptr && (*known)->job == 0) {
    auto allowed = may ? may(control, *access) : Result<void>();
    if (!allowed) {
      outcome.made = tl::unexpected(allowed.error());
      return;
    }
    outcome.before = (*known)->said;
    return;
  }
  outcome.made = change(control, *access);
  if (!*outcome.made || call.dry_run()) return;
  const auto& made = **outcome.made;
  for (const auto& trace : made.traces) Record(control, call, trace);
  if (key.empty() || made.remembered) return;
  control.Remember({user, key, digest, made.traces.empty() ? "" : made.traces.front().object,
                    status, made.once ? "" : model::WriteJson(made.answer.node)});
}

}  // namespace

void Desk::Change(const Call& call, int status, Changing change, May may) {
  auto outcome = std::make_shared<Outcome>();
  const auto digest = KeyOf(call).empty() ? "" : call.digest.empty() ? DigestOf(call) : call.digest;
  service_.Change(
      [call, status, digest, outcome, change = std::move(change),
       may = std::move(may)](Controller& control) {
        outcome->control = &control;
        CarryOut(control, call, status, digest, change, may, *outcome);
      },
      [call, status, outcome](const Result<void>& written) {
        auto& made = outcome->made;
        if (made && !*made) return ReplyError(*call.exchange, made->error());
        if (!written) return ReplyError(*call.exchange, written.error());
        if (const auto& before = outcome->before) {
          if (before->answer.empty()) return ReplyError(*call.exchange, SaidOnce(*before));
          return ReplyJson(*call.exchange, before->answer, before->status);
        }
        auto& done = **made;
        if (done.later) done.answer = done.later(*outcome->control);
        ReplyNode(*call.exchange, done.answer.node, call.dry_run() ? 200 : status,
                  std::move(done.answer.headers));
      });
}

void Desk::Enter(const Call& call, std::function<Result<Trace>(Controller&, const Access&)> check,
                 std::function<void()> begin) {
  auto done = std::make_shared<Result<Trace>>(Trace{});
  service_.Change(
      [call, done, check = std::move(check)](Controller& control) {
        auto access = Admit(control, call);
        *done = access ? check(control, *access) : tl::unexpected(access.error());
        if (*done) Record(control, call, **done);
      },
      [call, done, begin = std::move(begin)](const Result<void>& written) {
        if (!*done) return ReplyError(*call.exchange, done->error());
        if (!written) return ReplyError(*call.exchange, written.error());
        begin();
      });
}

void Desk::Keep(const Call& call, const std::shared_ptr<net::Exchange>& stream, Still still) {
  Keep(Open{call, std::move(still), stream, {}});
}

void Desk::Keep(const Call& call, std::weak_ptr<net::WebSocket> socket, Still still) {
  Keep(Open{call, std::move(still), {}, std::move(socket)});
}

void Desk::Keep(Open open) {
  open.call.exchange.reset();
  open.number = ++last_number_;
  open_.push_back(std::move(open));
  if (!std::exchange(judging_, true)) JudgeLater();
}

void Desk::JudgeLater() {
  server()->After(judged_every_ms_, [this] { service_.Read([this](Controller&) { AskWho(); }); });
}

void Desk::AskWho() {
  std::vector<std::pair<std::uint64_t, std::shared_ptr<const net::Request>>> asked;
  asked.reserve(open_.size());
  for (const auto& open : open_) asked.emplace_back(open.number, open.call.request);
  server()->Post([this, asked = std::move(asked)] {
    Callers now;
    for (const auto& [number, request] : asked) {
      auto caller = identify_ ? identify_(*request) : std::nullopt;
      if (caller) now.emplace(number, std::move(*caller));
    }
    service_.Read([this, now = std::move(now)](Controller& control) { Judge(control, now); });
  });
}

void Desk::Judge(Controller& control, const Callers& now) {
  std::erase_if(open_, [&](Open& open) {
    const auto stream = open.stream.lock();
    const auto socket = open.socket.lock();
    const bool over = stream ? stream->over() : !socket || socket->gone();
    if (over) return true;
    if (const auto known = now.find(open.number); known != now.end()) {
      open.call.caller = known->second;
    }
    const auto access = Admit(control, open.call);
    if (access ? open.still(control, *access) : access.error().code == ErrorCode::kUnavailable) {
      return false;
    }
    if (stream) stream->Abort();
    if (socket)
      socket->Close(kWsPolicy, access ? "not permitted any more" : access.error().message);
    return true;
  });
  judging_ = !open_.empty();
  if (judging_) JudgeLater();
}

}  // namespace muster::api
