#include "api/past.h"

#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "base/units.h"
#include "control/past_reading.h"

namespace muster::api {
namespace {

constexpr std::int64_t kWeekMs = 7LL * 86'400'000;
constexpr std::int64_t kMinuteMs = 60'000;

class Saving {
 public:
  Saving(Desk& desk, Call call, std::int64_t back_ms)
      : desk_(desk), call_(std::move(call)), reading_(back_ms) {}

  void Run() {
    while (!call_.exchange->gone()) {
      const auto done = Ask();
      if (!done) return;  // answered, or the daemon stops
      if (!*done) continue;
      net::Response response;
      response.content_type = "application/octet-stream";
      response.body = reading_.TakeFile();
      call_.exchange->Reply(std::move(response));
      return;
    }
  }

 private:
  // Whether that was the last piece; none: there is no more to be had.
  std::optional<bool> Ask() try {
    auto asked = std::make_shared<std::promise<bool>>();
    auto answer = asked->get_future();
    desk_.Begin(
        call_,
        [this, asked = std::move(asked)](Controller& control, const Access&) -> Result<void> {
          auto done = reading_.Add(control);
          if (!done) return tl::unexpected(done.error());
          asked->set_value(*done);
          return {};
        });
    return answer.get();
  } catch (const std::future_error&) {
    return std::nullopt;
  }

  Desk& desk_;
  Call call_;
  control::PastReading reading_;
};

}  // namespace

void ExportPast(Desk& desk, Worker& clerk, const Call& call) {
  const auto since = call.Text("since");
  const auto back_ms = since.empty() ? kWeekMs : ParseDurationMs(since);
  if (!back_ms || *back_ms < kMinuteMs) {
    return ReplyError(*call.exchange, {ErrorCode::kUsage, "parameter \"since\" is no time span",
                                       "at least a minute: 24h or 7d", "since"});
  }
  auto saving = std::make_shared<Saving>(desk, call, *back_ms);
  if (clerk.Do([saving] { saving->Run(); }, call.caller.user)) return;
  ReplyError(*call.exchange,
             {ErrorCode::kUnavailable, "too many such files are being made", "try again later"});
}

}  // namespace muster::api
