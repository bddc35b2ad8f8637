#include "shim/console.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "shim/terminal.h"

namespace muster::shim {
namespace {

constexpr std::size_t kMostTyped = std::size_t{64} << 10;

}  // namespace

void Console::Type(std::string_view bytes) {
  if (ends_ || !input()) return;
  typed_ += bytes;
  Push();
}

void Console::EndInput() {
  if (has_terminal()) return Type(std::string(1, EndOfInput(process_.out.get())));
  ends_ = true;
  Push();
}

bool Console::full() const { return typed_.size() >= kMostTyped; }

void Console::AddTo(std::vector<pollfd>& polled) const {
  if (!typed_.empty()) polled.push_back({input().get(), POLLOUT, 0});
}

void Console::Push() {
  while (!typed_.empty()) {
    const auto size = write(input().get(), typed_.data(), typed_.size());
    if (size > 0) {
      typed_.erase(0, static_cast<std::size_t>(size));
      continue;
    }
    if (size == 0 || errno == EAGAIN) return;
    typed_.clear();  // nobody reads any more
    ends_ = true;
  }
  if (ends_ && !has_terminal()) input().Close();
}

void Console::Resize(const contract::Window& window) const {
  if (has_terminal()) SetWindow(process_.out.get(), window);
}

void Console::Signal(int number) const {
  const auto foreground = has_terminal() ? Foreground(process_.out.get()) : std::nullopt;
  if (foreground && kill(-*foreground, number) == 0) return;
  // A process that was made just now may not have its group yet.
  if (kill(-process_.pid, number) != 0) kill(process_.pid, number);
}

}  // namespace muster::shim
