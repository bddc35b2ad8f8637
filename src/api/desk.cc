#include "api/desk.h"

#include <algorithm>
#include <optional>

namespace muster::api {
namespace {

constexpr int kJudgedEveryMs = 2'000;
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

void Desk::Change(const Call& call, int status, Changing change) {
  auto done = std::make_shared<std::optional<Result<Changed>>>();
  service_.Change(
      [call, done, change = std::move(change)](Controller& control) {
        auto access = Admit(control, call);
        *done = access ? change(control, *access) : tl::unexpected(access.error());
        if (!**done || call.dry_run()) return;
        for (const auto& trace : (***done).traces) Record(control, call, trace);
      },
      [call, status, done](const Result<void>& written) {
        if (*done && !**done) return ReplyError(*call.exchange, (*done)->error());
        if (!written) return ReplyError(*call.exchange, written.error());
        auto& answer = (***done).answer;
        ReplyNode(*call.exchange, answer.node, call.dry_run() ? 200 : status,
                  std::move(answer.headers));
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
  open_.push_back(std::move(open));
  if (std::exchange(judging_, true)) return;
  server()->After(kJudgedEveryMs,
                  [this] { service_.Read([this](Controller& control) { Judge(control); }); });
}

void Desk::Judge(Controller& control) {
  std::erase_if(open_, [&control](const Open& open) {
    const auto stream = open.stream.lock();
    const auto socket = open.socket.lock();
    const bool over = stream ? stream->over() : !socket || socket->gone();
    if (over) return true;
    const auto access = Admit(control, open.call);
    if (access && open.still(control, *access)) return false;
    if (stream) stream->Abort();
    if (socket)
      socket->Close(kWsPolicy, access ? "not permitted any more" : access.error().message);
    return true;
  });
  judging_ = false;
  if (open_.empty()) return;
  judging_ = true;
  server()->After(kJudgedEveryMs,
                  [this] { service_.Read([this](Controller& again) { Judge(again); }); });
}

}  // namespace muster::api
