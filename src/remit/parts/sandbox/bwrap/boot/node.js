// Waits in a sandbox that was started ahead, and becomes the script that it is told to run: as if by `node SCRIPT`.
'use strict';
{
  const fs = require('fs');
  const [message, wake, waits] = process.argv.slice(2).map(Number);
  fs.writeSync(waits, 'x');
  fs.closeSync(waits);
  if (fs.readSync(wake, Buffer.alloc(1), 0, 1, null) === 0) process.exit(0); // nobody needs it any more
  const data = Buffer.alloc(fs.fstatSync(message).size);
  fs.readSync(message, data, 0, data.length, 0);
  fs.closeSync(wake);
  fs.closeSync(message);
  const [count, ...words] = data.toString().split('\0');
  for (const word of words.slice(Number(count))) {
    const at = word.indexOf('=');
    process.env[word.slice(0, at)] = word.slice(at + 1);
  }
  const [, script, ...rest] = words.slice(0, Number(count));
  process.argv = [process.execPath, require('path').resolve(script), ...rest];
}
delete require.cache[__filename];
require('module')._load(process.argv[1], null, true);
