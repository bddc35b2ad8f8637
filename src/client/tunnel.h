// Tunnel: what goes on between this program and a worker, over a WebSocket, until one of them ends.
//
// Play() joins a terminal, or the three streams, to a program of the worker; Carry() joins one
// local connection to a port of it. One thread, one poll. Nothing is read from one side while the
// other does not take it. A terminal is put back as it was, however it ends.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "client/client.h"

namespace muster::client {

struct Played {
  bool detached = false;  // by the key; the program goes on
  int exit_code = -1;     // -1: ended by `signal`
  int signal = 0;
};

struct PlayOptions {
  bool terminal = false;  // the program has one, and so have we
  bool input = true;      // what is typed here goes there
};

// Ctrl-], as in telnet: shells and editors leave it alone.
inline constexpr char kDetachKey = 0x1d;

Result<Played> Play(Client& client, const std::string& path, Client::Query query,
                    const PlayOptions& options);

// Until either side has closed; `socket` is a connected stream and is closed at the end.
Result<void> Carry(Client& client, const std::string& path, const Client::Query& query, int socket);

}  // namespace muster::client
