/** Parsing of server-sent events, as in section 9.2.6 of the HTML standard. */

export interface ServerEvent {
  name: string;
  data: string;
  /** The last ID that was received; an event without one repeats it. */
  id: string;
}

/**
 * Return a function that takes the next piece of a decoded stream and dispatches the events that it
 * completes. `retry` is ignored: the delay of a reconnection is that of `bye`.
 */
export function eventParser(dispatch: (event: ServerEvent) => void): (text: string) => void {
  let [rest, name, data, id] = ['', '', '', ''];
  let isAfterCr = false;
  return (text) => {
    // a CR ends its line at once, and a LF behind it is part of the same line break
    const lines = (rest + (isAfterCr ? text.replace(/^\n/, '') : text)).split(/\r\n?|\n/);
    if (text !== '') isAfterCr = text.endsWith('\r');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [field, value = ''] = line.split(/: ?(.*)/s);
      if (field === 'data') data += `${value}\n`;
      else if (field === 'event') name = value;
      else if (field === 'id' && !value.includes('\0')) id = value;
      else if (line === '') {
        if (data !== '') dispatch({ name: name || 'message', data: data.slice(0, -1), id });
        name = data = '';
      }
    }
  };
}
