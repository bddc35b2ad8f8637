#include "train/mesh/reception.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace muster::train {
namespace {

constexpr std::size_t kMostStrangers = 64;

}  // namespace

void Watch(int epoll, int operation, int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll, operation, fd, &event);
}

Reception::Reception(const Identity& self, int epoll, std::int64_t timeout_ns,
                     std::vector<Entrance> entrances)
    : self_(self), epoll_(epoll), timeout_ns_(timeout_ns), entrances_(std::move(entrances)) {
  Listen(true);
}

void Reception::Listen(bool on) {
  if (on == listening_) return;
  listening_ = on;
  for (const auto& entrance : entrances_) {
    Watch(epoll_, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, entrance.listener.get(), EPOLLIN);
  }
}

bool Reception::Serve(int fd, const std::function<void(Greeter&)>& admit) {
  for (const auto& entrance : entrances_) {
    if (entrance.listener.get() != fd) continue;
    Accept(entrance);
    return true;
  }
  const auto found = strangers_.find(fd);
  if (found == strangers_.end()) return false;
  const auto step = found->second->Read();
  if (step == Greeter::Step::kMore) return true;
  Watch(epoll_, EPOLL_CTL_DEL, fd, 0);
  const auto greeter = std::move(found->second);
  strangers_.erase(found);
  if (step == Greeter::Step::kProved) admit(*greeter);
  return true;
}

void Reception::Accept(const Entrance& entrance) {
  while (true) {
    Accepted accepted = AcceptOn(entrance.listener.get());
    if (!accepted.fd) {
      if (accepted.code == EMFILE || accepted.code == ENFILE) Listen(false);
      if (accepted.code == EINTR || accepted.code == ECONNABORTED) continue;
      return;
    }
    if (strangers_.size() >= kMostStrangers) {
      strangers_.erase(std::ranges::min_element(
          strangers_, {}, [](const auto& entry) { return entry.second->deadline_ns(); }));
    }
    const int fd = accepted.fd.get();
    strangers_[fd] = std::make_unique<Greeter>(self_, std::move(accepted.fd), entrance.shares,
                                               NowNs() + timeout_ns_);
    Watch(epoll_, EPOLL_CTL_ADD, fd, EPOLLIN);
  }
}

std::int64_t Reception::OverAtNs(std::int64_t latest_ns) const {
  for (const auto& [fd, stranger] : strangers_) {
    latest_ns = std::min(latest_ns, stranger->deadline_ns());
  }
  return latest_ns;
}

void Reception::HangUp(std::int64_t now_ns) {
  std::erase_if(strangers_,
                [&](const auto& entry) { return entry.second->deadline_ns() <= now_ns; });
}

}  // namespace muster::train
