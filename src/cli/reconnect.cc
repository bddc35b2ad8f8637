#include "cli/reconnect.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>

#include "cli/progress.h"
#include "model/fields.h"

namespace muster::cli {
namespace {

constexpr std::int64_t kMostSeconds = 86'400;

class Outage {
 public:
  void Wait(int left_ms) {
    const std::lock_guard lock(mutex_);
    const auto text =
        fmt::format("musterd does not answer; trying again for {} s", (left_ms + 999) / 1000);
    if (line_.shown()) return line_.Say(text);
    if (!said_) std::cerr << "muster: " << text << std::endl;
    said_ = true;
  }
  void End() {
    const std::lock_guard lock(mutex_);
    line_.Erase();
    said_ = false;
  }

 private:
  std::mutex mutex_;
  Progress line_;
  bool said_ = false;
};

}  // namespace

client::Patience Reconnecting() {
  client::Patience patience;
  if (const char* text = std::getenv("MUSTER_RECONNECT")) {
    const auto seconds = model::ParseWhole(text);
    if (seconds && *seconds >= 0 && *seconds <= kMostSeconds) {
      patience.for_ms = static_cast<int>(*seconds * 1000);
    }
  }
  const auto outage = std::make_shared<Outage>();
  patience.on_wait = [outage](int left_ms) { outage->Wait(left_ms); };
  patience.on_back = [outage] { outage->End(); };
  return patience;
}

}  // namespace muster::cli
