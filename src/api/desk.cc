#include "api/desk.h"

#include <memory>
#include <optional>

namespace muster::api {

Result<Access> Admit(Controller& control, const Call& call) {
  auto caller = Identify(control.state(), call, control.NowMs());
  if (!caller) return tl::unexpected(caller.error());
  Access access(control.state(), std::move(*caller));
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

void Desk::Read(const Call& call, Reading read) {
  service_.Read([call, read = std::move(read)](Controller& control) {
    auto access = Admit(control, call);
    if (!access) return ReplyError(*call.exchange, access.error());
    auto answer = read(control, *access);
    if (!answer) return ReplyError(*call.exchange, answer.error());
    ReplyNode(*call.exchange, answer->node, 200, std::move(answer->headers));
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
        const auto& made = ***done;
        control.Audit({0, 0, access->caller().user, access->caller().from, call.operation().id,
                       made.object, made.queue, made.before, made.after});
      },
      [call, status, done](const Result<void>& written) {
        if (*done && !**done) return ReplyError(*call.exchange, (*done)->error());
        if (!written) return ReplyError(*call.exchange, written.error());
        auto& answer = (***done).answer;
        ReplyNode(*call.exchange, answer.node, call.dry_run() ? 200 : status,
                  std::move(answer.headers));
      });
}

}  // namespace muster::api
