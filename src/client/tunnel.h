// Tunnel: what goes on between this program and a worker, over a WebSocket, until one of them ends.
//
// Play() joins a terminal, or the three streams, to a program of the worker; Carry() joins one
// local connection to a port of it. One thread, one poll. Nothing is read from one side while the
// other does not take it. A terminal is put back as it was, however it ends; one that is gone is
// left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "client/client.h"

namespace muster::client {

struct Played {
  bool detached = false;     // the program goes on
  bool input_ended = false;  // and that is why; else the key was pressed
  bool lost = false;         // the daemon went away; nothing is known of the program
  int exit_code = -1;        // -1: ended by `signal`
  int signal = 0;
};

// What the end of our own input means.
enum class AtInputEnd : std::uint8_t {
  kTell,   // the program's input ends too
  kStay,   // nothing more is sent, the program is watched until it ends
  kLeave,  // the program is left running
};

struct PlayOptions {
  bool terminal = false;  // the program has one, and so have we
  AtInputEnd at_input_end = AtInputEnd::kTell;
  std::string greeting = {};             // said on standard error once it is joined
  std::function<void()> on_joined = {};  // before that
};

// Ctrl-], as in telnet: shells and editors leave it alone.
inline constexpr char kDetachKey = 0x1d;

Result<Played> Play(Client& client, const std::string& path, Client::Query query,
                    const PlayOptions& options);

// Whether Carry() would get through now; carries nothing.
Result<void> Knock(Client& client, const std::string& path, const Client::Query& query);

// Until either side has closed; `socket` is a connected stream and is closed at the end.
Result<void> Carry(Client& client, const std::string& path, const Client::Query& query, int socket);

}  // namespace muster::client
