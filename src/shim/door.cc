#include "shim/door.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <utility>

#include "contract/signals.h"

namespace muster::shim {
namespace {

using contract::FrameKind;

constexpr std::size_t kMostSessions = 64;
constexpr std::size_t kReplayBytes = std::size_t{64} << 10;
constexpr std::size_t kMostUnsent = std::size_t{1} << 20;
constexpr int kReadsAtATime = 16;  // of one session, before others get their turn

}  // namespace

Door::Door(int listener, const Place& place, Console& worker)
    : listener_(listener), place_(place), worker_(worker), replay_(kReplayBytes) {}

void Door::AddTo(std::vector<pollfd>& polled) {
  listener_at_ = polled.size();
  // Above the bound connections wait in the backlog until one is closed.
  polled.push_back({sessions_.size() < kMostSessions ? listener_ : -1, POLLIN, 0});
  if (listener_ >= 0) worker_.AddTo(polled);
  for (const auto& session : sessions_) {
    session->peer.AddTo(polled, !ConsoleOf(*session).full());
    if (session->beside) session->beside->AddTo(polled, session->peer);
  }
}

void Door::Serve(const std::vector<pollfd>& polled) {
  if (polled.at(listener_at_).revents != 0) Accept();
  worker_.Push();
  for (const auto& session : sessions_) Serve(*session);
  DropGone();
}

void Door::Accept() {
  while (sessions_.size() < kMostSessions) {
    Handle socket(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    sessions_.push_back(std::make_unique<Session>(std::move(socket)));
  }
}

void Door::Serve(Session& session) {
  session.peer.Push();
  for (int reads = 0; reads < kReadsAtATime && !ConsoleOf(session).full(); ++reads) {
    if (!session.peer.Receive()) break;
    Take(session);
  }
  if (ConsoleOf(session).full()) session.peer.NoticeHangUp();
  if (session.beside && !session.peer.finishing()) session.beside->Copy(session.peer);
}

void Door::Take(Session& session) {
  auto& peer = session.peer;
  if (!session.attached && !session.beside && !peer.finishing()) {
    const auto line = peer.Line();
    if (!line) return peer.Drop(Describe(line.error()));
    if (!*line) return;
    Begin(session, **line);
  }
  while (!peer.finishing()) {
    const auto frame = peer.Next();
    if (!frame) return peer.Drop(Describe(frame.error()));
    if (!*frame) return;
    Obey(session, **frame);
  }
}

void Door::Begin(Session& session, std::string_view line) {
  const auto request = contract::DecodeDoorRequest(line);
  if (!request) return session.peer.Drop(Describe(request.error()));
  if (const auto* attach = std::get_if<contract::Attach>(&*request)) {
    session.attached = true;
    worker_.Resize(attach->window);
    const auto shown = replay_.Text();
    if (!shown.empty()) session.peer.Send(FrameKind::kData, shown);
    return;
  }
  if (!takes_execs_) return session.peer.Drop("this worker is being stopped");
  auto beside = Beside::Start(place_, std::get<contract::Exec>(*request));
  if (!beside) return session.peer.Drop(Describe(beside.error()));
  session.beside = *std::move(beside);
}

void Door::Obey(Session& session, const contract::Frame& frame) {
  auto& console = ConsoleOf(session);
  const bool can_type = session.beside || console.has_terminal();
  switch (frame.kind) {
    case FrameKind::kData:
      if (!can_type) {
        return session.peer.Drop(
            "this worker has no terminal, so nothing can be typed to it "
            "(submit it as an interactive job, or exec a shell beside it)");
      }
      typed_ = typed_ || console.has_terminal();
      return console.Type(frame.payload);
    case FrameKind::kEnd:
      if (can_type) console.EndInput();
      return;
    case FrameKind::kWindow: {
      const auto window = contract::DecodeWindow(frame.payload);
      if (!window) return session.peer.Drop(Describe(window.error()));
      return console.Resize(*window);
    }
    case FrameKind::kSignal: {
      const auto number = contract::SignalNumber(frame.payload);
      if (!number) return session.peer.Drop(fmt::format("\"{}\" is no signal", frame.payload));
      if (!session.beside || !session.beside->ended()) console.Signal(*number);
      return;
    }
    case FrameKind::kErr:
    case FrameKind::kExit:
    case FrameKind::kFault:
      return session.peer.Drop("a frame of this kind is for those who watch, not for a worker");
  }
}

Console& Door::ConsoleOf(Session& session) {
  return session.beside ? session.beside->console() : worker_;
}

void Door::DropGone() {
  for (const auto& session : sessions_) {
    if (session->peer.done() && session->beside) session->beside->Leave();
  }
  std::erase_if(sessions_, [](const auto& session) { return session->peer.done(); });
}

void Door::Show(FrameKind kind, std::string_view bytes) {
  if (worker_.has_terminal()) replay_.Keep(bytes);
  for (const auto& session : sessions_) {
    auto& peer = session->peer;
    if (!session->attached || peer.finishing()) continue;
    peer.Send(kind, bytes);
    if (peer.unsent() > kMostUnsent) {
      peer.Drop("the worker prints more than is read here; attach again, or read its log");
    }
  }
}

void Door::Ended(pid_t pid, int status) {
  for (const auto& session : sessions_) {
    if (session->beside && session->beside->pid() == pid) session->beside->Ended(status);
  }
}

bool Door::TakeTyped() { return std::exchange(typed_, false); }

void Door::Conclude(FrameKind kind, std::string_view last) {
  listener_ = -1;
  for (const auto& session : sessions_) {
    auto& peer = session->peer;
    if (session->beside && !peer.finishing()) session->beside->Copy(peer);
    if (peer.finishing()) continue;
    if (session->beside) {
      session->beside->Finish(peer);
    } else {
      peer.Finish(kind, last);
    }
  }
  DropGone();
}

}  // namespace muster::shim
