// Express with its defaults: case is ignored, a trailing slash too, escapes are not decoded.
const express = require('express');
const app = express();
app.get('/v1/pay', (request, response) => response.send('PAY'));
app.use('/v1/files', (request, response) => response.send('FILES'));
app.use((request, response) => response.status(404).send('nothing'));
const server = app.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`));
