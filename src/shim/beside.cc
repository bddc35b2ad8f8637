#include "shim/beside.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace muster::shim {
namespace {

using contract::FrameKind;
using contract::LaunchOrder;

constexpr std::size_t kMostUnsent = std::size_t{256} << 10;
constexpr std::size_t kMostLate = std::size_t{1} << 20;  // more than a pipe holds
constexpr int kReadsAtATime = 16;

LaunchOrder OrderOf(const LaunchOrder& worker, const contract::Exec& wish) {
  LaunchOrder order = worker;
  order.command = wish.terminal ? worker.exec_terminal_prefix : worker.exec_prefix;
  // A variable of the program that enters a container is none of the program inside.
  if (!order.command.empty() && !wish.env.empty()) {
    order.command.emplace_back("env");
    for (const auto& [name, value] : wish.env) {
      order.command.push_back(fmt::format("{}={}", name, value));
    }
  }
  order.command.insert(order.command.end(), wish.command.begin(), wish.command.end());
  for (const auto& [name, value] : wish.env) order.env.insert_or_assign(name, value);
  if (wish.terminal) order.env.try_emplace("TERM", kUsualTerm);
  order.terminal = wish.terminal;
  order.rows = wish.window.rows;
  order.cols = wish.window.cols;
  return order;
}

}  // namespace

Result<std::unique_ptr<Beside>> Beside::Start(const Place& place, const contract::Exec& wish) {
  auto order = OrderOf(place.order, wish);
  auto process = Spawn(order, place.doors, place.use_rlimits, Part::kBeside);
  if (!process) return tl::unexpected(process.error());
  return std::make_unique<Beside>(*std::move(process), std::move(order));
}

void Beside::AddTo(std::vector<pollfd>& polled, const Peer& peer) const {
  console_.AddTo(polled);
  if (ended_ || peer.unsent() >= kMostUnsent) return;
  for (const auto* from : {&process_.out, &process_.err}) {
    if (*from) polled.push_back({from->get(), POLLIN, 0});
  }
}

void Beside::Copy(Peer& peer) {
  console_.Push();
  const bool out_is_dry = CopyStream(process_.out, FrameKind::kData, peer);
  const bool err_is_dry = CopyStream(process_.err, FrameKind::kErr, peer);
  if (ended_ && out_is_dry && err_is_dry) Finish(peer);
}

// True when there is nothing more, for now or for ever.
bool Beside::CopyStream(Handle& from, FrameKind kind, Peer& peer) {
  std::array<char, 16'384> block;
  for (int reads = 0; from && peer.unsent() < kMostUnsent; ++reads) {
    if (ended_ ? late_bytes_ > kMostLate : reads == kReadsAtATime) return ended_;
    const auto size = read(from.get(), block.data(), block.size());
    if (size < 0) return true;
    if (size == 0) {
      from.Close();
      return true;
    }
    const auto bytes = static_cast<std::size_t>(size);
    peer.Send(kind, {block.data(), bytes});
    if (ended_) late_bytes_ += bytes;
  }
  return !from;
}

void Beside::Finish(Peer& peer) {
  Fault fault;
  if (read(process_.verdict.get(), &fault, sizeof fault) == sizeof fault) {
    return peer.Finish(FrameKind::kFault, Explain(fault, order_));
  }
  peer.Finish(FrameKind::kExit, contract::EncodeEnded(end_));
}

void Beside::Ended(int status) {
  ended_ = true;
  end_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  end_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

void Beside::Leave() {
  if (!ended_ && !console_.has_terminal()) console_.Signal(SIGTERM);
  // Where there is a terminal, this hangs it up.
  process_.out.Close();
  process_.far.Close();
}

}  // namespace muster::shim
