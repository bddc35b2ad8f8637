#include "client/tunnel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <vector>

#include "contract/frames.h"
#include "net/ws_client.h"

namespace muster::client {
namespace {

using contract::FrameKind;

constexpr std::size_t kMostWaiting = std::size_t{256} << 10;
constexpr int kFarewellMs = 1'000;  // for what was typed last to get there
constexpr int kNormalClose = 1000;  // of a WebSocket
constexpr int kGoingAway = 1001;

// Every key goes to the program, which has a terminal of its own to make sense of it.
class RawTerminal {
 public:
  explicit RawTerminal(bool wanted) {
    if (!wanted || ::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    changed_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
  }
  ~RawTerminal() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
  bool changed_ = false;
};

// A pipe that a change of the window's size is written to, since poll() must see it.
class WindowChanges {
 public:
  WindowChanges() {
    if (::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
    write_end = pipe_[1];
    struct sigaction action {};
    action.sa_handler = [](int) {
      const int saved = errno;
      [[maybe_unused]] const auto told = ::write(write_end, "w", 1);
      errno = saved;
    };
    ::sigaction(SIGWINCH, &action, &before_);
  }
  ~WindowChanges() {
    if (pipe_[0] < 0) return;
    ::sigaction(SIGWINCH, &before_, nullptr);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  WindowChanges(const WindowChanges&) = delete;
  WindowChanges& operator=(const WindowChanges&) = delete;

  int fd() const { return pipe_[0]; }
  bool Take() const {
    std::array<char, 64> ignored{};
    return ::read(pipe_[0], ignored.data(), ignored.size()) > 0;
  }

 private:
  static inline int write_end = -1;  // what a signal handler can reach
  std::array<int, 2> pipe_{-1, -1};
  struct sigaction before_ {};
};

contract::Window WindowNow() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return {};
  return {size.ws_row, size.ws_col};
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

class Player {
 public:
  Player(net::WsClient& socket, const PlayOptions& options) : socket_(socket), options_(options) {}

  Result<Played> Run() {
    const RawTerminal raw(options_.terminal);
    const WindowChanges window;
    while (true) {
      auto done = TakeMessages();
      if (!done) return tl::unexpected(done.error());
      if (*done) return played_;
      std::vector<pollfd> polled{{socket_.fd(), socket_.events(), 0}, {window.fd(), POLLIN, 0}};
      if (input_ && socket_.Queued() < kMostWaiting) polled.push_back({STDIN_FILENO, POLLIN, 0});
      ::poll(polled.data(), polled.size(), -1);
      if (polled[1].revents != 0 && window.Take() && options_.terminal) {
        Send(FrameKind::kWindow, contract::EncodeWindow(WindowNow()));
      }
      if (polled.size() > 2 && polled[2].revents != 0 && !TakeInput()) return Leave();
    }
  }

 private:
  void Send(FrameKind kind, std::string_view payload) {
    socket_.Send(contract::EncodeFrame(kind, payload));
  }

  // False: it is to be left.
  bool TakeInput() {
    std::array<char, 8192> block{};
    const auto size = ::read(STDIN_FILENO, block.data(), block.size());
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (size <= 0) return InputEnded();
    const std::string_view typed(block.data(), static_cast<std::size_t>(size));
    const auto key = options_.terminal ? typed.find(kDetachKey) : std::string_view::npos;
    Send(FrameKind::kData, typed.substr(0, key));
    return key == std::string_view::npos;
  }

  bool InputEnded() {
    input_ = false;
    // A terminal of ours that ends has been closed: nobody is there any more.
    played_.input_ended = options_.terminal || options_.at_input_end == AtInputEnd::kLeave;
    if (played_.input_ended) return false;
    if (options_.at_input_end == AtInputEnd::kTell) Send(FrameKind::kEnd, "");
    return true;
  }

  // What was typed before must arrive, so the other side is waited for, but not for long.
  Played Leave() {
    socket_.Close(kNormalClose, "");
    while (true) {
      const auto done = TakeMessages();
      if (!done || *done || !socket_.Wait(kFarewellMs)) break;
    }
    played_.lost = false;
    if (!known_) played_.detached = true;
    // Answers of the terminal to the program are not for the shell that reads next.
    if (options_.terminal) ::tcflush(STDIN_FILENO, TCIFLUSH);
    return played_;
  }

  // True: it is over.
  Result<bool> TakeMessages() {
    while (true) {
      auto message = socket_.Receive();
      const bool lost = !message && message.error().code == ErrorCode::kUnavailable;
      if (lost || (message && *message && (*message)->closed && (*message)->code == kGoingAway)) {
        played_.lost = !known_;
        return true;
      }
      if (!message) return tl::unexpected(message.error());
      if (!*message) return false;
      if ((*message)->closed) {
        if (known_) return true;
        return Fail(ErrorCode::kUnavailable,
                    "the connection to the worker was closed" +
                        ((*message)->bytes.empty() ? std::string() : ": " + (*message)->bytes));
      }
      frames_.Add((*message)->bytes);
      auto ended = TakeFrames();
      if (!ended || *ended) return ended;
    }
  }

  Result<bool> TakeFrames() {
    while (true) {
      auto frame = frames_.Next();
      if (!frame) return tl::unexpected(frame.error());
      if (!*frame) return false;
      const auto& [kind, payload] = **frame;
      switch (kind) {
        case FrameKind::kData:
          if (!WriteAll(STDOUT_FILENO, payload)) return true;
          break;
        case FrameKind::kErr:
          WriteAll(STDERR_FILENO, payload);
          break;
        case FrameKind::kExit: {
          const auto ended = contract::DecodeEnded(payload);
          if (!ended) return tl::unexpected(ended.error());
          played_.exit_code = ended->exit_code;
          played_.signal = ended->signal;
          known_ = true;
          return true;
        }
        case FrameKind::kFault:
          return Fail(ErrorCode::kConflict, payload);
        case FrameKind::kWindow:
        case FrameKind::kEnd:
        case FrameKind::kSignal:
          break;  // not for us
      }
    }
  }

  net::WsClient& socket_;
  PlayOptions options_;
  contract::FrameReader frames_;
  Played played_;
  bool input_ = true;   // what is typed here goes there
  bool known_ = false;  // how it ended
};

}  // namespace

Result<Played> Play(Client& client, const std::string& path, Client::Query query,
                    const PlayOptions& options) {
  if (options.terminal) {
    const auto window = WindowNow();
    query["rows"] = std::to_string(window.rows);
    query["cols"] = std::to_string(window.cols);
  }
  auto socket = client.Open(path, query);
  if (!socket) return tl::unexpected(socket.error());
  if (options.on_joined) options.on_joined();
  WriteAll(STDERR_FILENO, options.greeting);
  return Player(**socket, options).Run();
}

Result<void> Knock(Client& client, const std::string& path, const Client::Query& query) {
  auto there = client.Open(path, query);
  if (!there) return tl::unexpected(there.error());
  return {};
}

Result<void> Carry(Client& client, const std::string& path, const Client::Query& query,
                   int socket) {
  auto there = client.Open(path, query);
  if (!there) {
    ::close(socket);
    return tl::unexpected(there.error());
  }
  bool reading = true;
  Result<void> done;
  while (true) {
    auto message = (*there)->Receive();
    if (!message) {
      done = tl::unexpected(message.error());
      break;
    }
    if (*message) {
      if ((*message)->closed || !WriteAll(socket, (*message)->bytes)) break;
      continue;
    }
    std::vector<pollfd> polled{{(*there)->fd(), (*there)->events(), 0}};
    if (reading && (*there)->Queued() < kMostWaiting) polled.push_back({socket, POLLIN, 0});
    ::poll(polled.data(), polled.size(), -1);
    if (polled.size() < 2 || polled[1].revents == 0) continue;
    std::array<char, 16'384> block{};
    const auto size = ::read(socket, block.data(), block.size());
    if (size < 0) break;
    reading = size > 0;
    (*there)->Send({block.data(), static_cast<std::size_t>(size)});  // empty: its input ends
  }
  ::close(socket);
  return done;
}

}  // namespace muster::client
