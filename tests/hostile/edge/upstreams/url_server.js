// A server that parses the target as browsers parse links, as shown in Node's own documentation.
const http = require('http');
const server = http.createServer((request, response) => {
  let path = '';
  try {
    path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
  } catch (error) {
    response.statusCode = 400;
  }
  if (path === '/v1/pay') return response.end('PAY');
  if (path.startsWith('/v1/files/')) return response.end('FILES');
  response.statusCode = 404;
  response.end('nothing');
});
server.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`));
