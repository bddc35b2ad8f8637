// WorkerSocket: the connections of a worker that speaks the contract.
//
// A worker may have several (one per process that has something to say). Each begins with hello;
// what is told to the worker goes to every connection that said it, and the newest size also to
// those that say it later: a program may take a while until it listens. Nothing a worker does here
// can hurt its shim: lines, connections and what is kept for a reader that does not read are
// bounded, and whoever exceeds them is disconnected.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/lines.h"
#include "shim/handle.h"

namespace muster::shim {

class WorkerSocket {
 public:
  using Heard = std::function<void(const contract::Said&)>;

  WorkerSocket(int listener, contract::Welcome welcome, Heard heard);

  bool speaks() const;

  void AddTo(std::vector<pollfd>& polled) const;
  // Takes whatever there is, on every connection; without waiting.
  void Serve();

  void Tell(std::string_view line);

 private:
  struct Client {
    Handle handle;
    std::string in;
    std::string out;
    bool greeted = false;
    bool deaf = false;
    bool gone = false;
  };

  void Accept();
  void Read(Client& client);
  void Take(Client& client, std::string_view line);
  static void Send(Client& client, std::string_view line);

  int listener_;
  contract::Welcome welcome_;
  std::string size_;  // the newest `resize`, as a line; empty: none
  Heard heard_;
  std::vector<Client> clients_;
};

}  // namespace muster::shim
