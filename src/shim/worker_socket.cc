#include "shim/worker_socket.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "contract/order.h"

namespace muster::shim {
namespace {

constexpr std::size_t kMostClients = 64;
constexpr std::size_t kMostUnread = std::size_t{1} << 20;
constexpr int kReadsAtATime = 64;  // then others get their turn

}  // namespace

WorkerSocket::WorkerSocket(int listener, contract::Welcome welcome, Heard heard)
    : listener_(listener), welcome_(std::move(welcome)), heard_(std::move(heard)) {}

bool WorkerSocket::speaks() const {
  for (const auto& client : clients_) {
    if (client.greeted) return true;
  }
  return false;
}

void WorkerSocket::AddTo(std::vector<pollfd>& polled) const {
  // Above the bound connections wait in the backlog until one is closed.
  if (clients_.size() < kMostClients) polled.push_back({listener_, POLLIN, 0});
  for (const auto& client : clients_) {
    const int events = client.out.empty() ? POLLIN : POLLIN | POLLOUT;
    polled.push_back({client.handle.get(), static_cast<short>(events), 0});
  }
}

void WorkerSocket::Serve() {
  Accept();
  for (auto& client : clients_) {
    if (!client.out.empty()) Send(client, {});
    Read(client);
  }
  std::erase_if(clients_, [](const Client& client) { return client.gone; });
}

void WorkerSocket::Tell(std::string_view line) {
  const auto told = contract::DecodeTold(line);
  if (told && std::holds_alternative<contract::Resize>(*told)) size_ = line;
  for (auto& client : clients_) {
    if (client.greeted) Send(client, line);
  }
}

void WorkerSocket::Accept() {
  while (clients_.size() < kMostClients) {
    Handle handle(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!handle) return;
    clients_.emplace_back().handle = std::move(handle);
  }
}

void WorkerSocket::Read(Client& client) {
  std::array<char, 8192> block{};
  for (int reads = 0; reads < kReadsAtATime && !client.gone; ++reads) {
    const auto size = recv(client.handle.get(), block.data(), block.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    client.gone = size <= 0;
    if (size > 0) client.in.append(block.data(), static_cast<std::size_t>(size));
    std::size_t begin = 0;
    for (auto end = client.in.find('\n'); end != std::string::npos;
         end = client.in.find('\n', begin)) {
      Take(client, std::string_view(client.in).substr(begin, end - begin));
      begin = end + 1;
    }
    client.in.erase(0, begin);
    if (client.in.size() > contract::kLongestLine) {
      Send(client, contract::Encode(contract::Told{contract::Refused{"this line is too long"}}));
      client.gone = true;
    }
  }
}

void WorkerSocket::Take(Client& client, std::string_view line) {
  auto said = contract::DecodeSaid(line);
  if (said && !client.greeted && !std::holds_alternative<contract::Hello>(*said)) {
    said = Fail(ErrorCode::kInvalid, "say hello first");
  }
  if (!said) {
    return Send(client,
                contract::Encode(contract::Told{contract::Refused{Describe(said.error())}}));
  }
  if (std::holds_alternative<contract::Hello>(*said)) {
    client.greeted = true;
    Send(client, contract::Encode(contract::Told{welcome_}) + size_);
  }
  heard_(*said);
}

void WorkerSocket::Send(Client& client, std::string_view line) {
  if (client.deaf) return;
  client.out += line;
  while (!client.out.empty()) {
    const auto size = send(client.handle.get(), client.out.data(), client.out.size(),
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN && client.out.size() <= kMostUnread) return;
      // A peer that has ended may have left lines behind: reading finds out when it is gone.
      if (errno == EAGAIN) client.gone = true;
      client.deaf = true;
      return client.out.clear();
    }
    client.out.erase(0, static_cast<std::size_t>(size));
  }
}

}  // namespace muster::shim
