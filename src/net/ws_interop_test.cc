// Our WebSocket against another one's: Boost.Beast as the client of our server.
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include "net/ws_testing.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;

TEST(WsInterop, BeastsClientIsUnderstoodAndUnderstands) {
  const SocketFolder folder;
  WsEcho echo;
  const auto server = StartServer(At(folder.Path()), echo.Handle());
  asio::io_context context;
  beast::websocket::stream<asio::local::stream_protocol::socket> client(context);
  client.next_layer().connect(asio::local::stream_protocol::endpoint(folder.Path()));
  client.handshake("localhost", "/");
  client.binary(true);
  client.write_buffer_bytes(4096);
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 125, 126, 65'535, 65'536, 300'000}) {
    for (const bool fragments : {false, true}) {
      client.auto_fragment(fragments);
      std::string message(size, '\0');
      for (std::size_t i = 0; i < size; ++i) message[i] = static_cast<char>(i % 253);
      client.write(asio::buffer(message));
      beast::flat_buffer buffer;
      client.read(buffer);
      EXPECT_EQ(beast::buffers_to_string(buffer.data()), message);
    }
  }
  client.ping("are you there");
  client.close({beast::websocket::close_code::going_away, "see you"});
  EXPECT_EQ(client.reason().code, beast::websocket::close_code::going_away);
  EXPECT_EQ(echo.AwaitClosed(), (std::pair<int, std::string>(kWsGoingAway, "see you")));
}

TEST(WsInterop, BeastsClientReadsOurCloseAndOurPings) {
  const SocketFolder folder;
  WsEcho echo;
  auto options = At(folder.Path());
  options.ping_interval_ms = 20;
  const auto server = StartServer(options, echo.Handle());
  asio::io_context context;
  beast::websocket::stream<asio::local::stream_protocol::socket> client(context);
  client.next_layer().connect(asio::local::stream_protocol::endpoint(folder.Path()));
  client.handshake("localhost", "/");
  int pings = 0;
  const auto socket = echo.Socket();
  client.control_callback([&](beast::websocket::frame_type kind, beast::string_view) {
    if (kind == beast::websocket::frame_type::ping && ++pings == 3) socket->Close(4000, "done");
  });
  beast::flat_buffer buffer;
  boost::system::error_code error;
  client.read(buffer, error);
  EXPECT_EQ(error, beast::websocket::error::closed);
  EXPECT_EQ(client.reason().code, 4000);
  EXPECT_EQ(client.reason().reason, "done");
  EXPECT_GE(pings, 3);
  EXPECT_EQ(echo.AwaitClosed().first, 4000);
}

}  // namespace
}  // namespace muster::net
